/** Width of a panel beside a list, in pixels. */
export const peekWidth = 392;

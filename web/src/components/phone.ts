/** Windows in which the navigation is at the bottom and details are sheets. */
export const phoneQuery = "(max-width: 48em)";

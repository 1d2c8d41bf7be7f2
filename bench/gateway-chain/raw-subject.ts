/** What the raw chain asks on. */
export const rawSubject = "bench.device";

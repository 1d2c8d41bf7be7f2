/** What the user sees: `log` goes to standard output, `warn` to standard error, a line each. */
export type Terminal = Pick<Console, "log" | "warn">;

/** No answer came from the server: it refused the connection, has no address, or broke it off. */
export class DevmeshUnreachable extends Error {
  override readonly name = "DevmeshUnreachable";
  /** Address of the server. */
  readonly url: string;
  /** Code of the operating system, such as `ECONNREFUSED`; undefined in browsers. */
  readonly code: string | undefined;

  constructor(url: string, cause: unknown) {
    const code = codeOf(cause);
    super(
      `${url} ${whatFailed[code ?? ""] ?? "cannot be reached"}${code === undefined ? "" : ` (${code})`}`,
      {
        cause,
      },
    );
    this.url = url;
    this.code = code;
  }
}

const whatFailed: Readonly<Record<string, string>> = {
  ECONNREFUSED: "refused the connection",
  ECONNRESET: "closed the connection",
  UND_ERR_SOCKET: "closed the connection",
  ENOTFOUND: "has no known address",
  EAI_AGAIN: "has no known address now",
};

/** `fetch` of Node has the cause in its error; of several attempts it is the first. */
function codeOf(error: unknown): string | undefined {
  if (typeof error !== "object" || error === null) return undefined;
  if ("code" in error && typeof error.code === "string") return error.code;
  if ("errors" in error && Array.isArray(error.errors)) return codeOf(error.errors[0]);
  return "cause" in error ? codeOf(error.cause) : undefined;
}

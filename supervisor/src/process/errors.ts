/** One sentence for the user that says why something of the mesh could not start. */
export class StartFailure extends Error {
  override readonly name = "StartFailure";
}

/** The code of an error of the operating system (`ENOENT`); undefined for anything else. */
export function systemErrorCode(error: unknown): string | undefined {
  const { code } = (error ?? {}) as { readonly code?: unknown };
  return typeof code === "string" ? code : undefined;
}

/** What an error says. */
export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

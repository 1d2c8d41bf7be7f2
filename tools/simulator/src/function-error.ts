/** A failed call, with the code and message that the caller sees. */
export class FunctionError extends Error {
  override readonly name = "FunctionError";
  readonly code: number;

  constructor(code: number, message: string) {
    super(message);
    this.code = code;
  }
}

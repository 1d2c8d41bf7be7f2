import { z } from "zod";

/** One thing wrong in the input of a call or in a request. */
export const Violation = z
  .object({
    pointer: z.string().describe("JSON pointer (RFC 6901) into the input; empty for the whole of it."),
    detail: z.string().describe("What is wrong there, in words that may change."),
  })
  .meta({ id: "Violation", description: "One thing wrong in a request." });
export type Violation = z.infer<typeof Violation>;

const maxViolations = 500;
/** UTF-16 units of a pointer; a longer one is cut, since a member's name may fill a whole body. */
const maxPointerLength = 1024;
const maxTotalLength = 131_072;

/** The first violations found in one input: at most 500 and 128 K characters, so that the error fits into a reply. */
export class ViolationList {
  readonly #list: Violation[] = [];
  #length = 0;

  add(pointer: string, detail: string): void {
    if (this.full) return;
    const shown = pointer.length > maxPointerLength ? `${pointer.slice(0, maxPointerLength)}…` : pointer;
    this.#list.push({ pointer: shown, detail });
    this.#length += shown.length + detail.length;
  }

  /** Whether further violations would be dropped, so that the check can stop. */
  get full(): boolean {
    return this.#list.length >= maxViolations || this.#length >= maxTotalLength;
  }

  get any(): boolean {
    return this.#list.length > 0;
  }

  get list(): Violation[] {
    return [...this.#list];
  }

  get pointers(): string[] {
    return this.#list.map(({ pointer }) => pointer);
  }
}

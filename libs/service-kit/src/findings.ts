/** One thing wrong in a request body, with a JSON pointer to it. */
export interface Finding {
  readonly pointer: string;
  readonly detail: string;
}

const maxFindings = 500;
/** UTF-16 units of a pointer; a longer one is cut, since a member's name may fill a whole body. */
const maxPointerLength = 1024;
const maxTotalLength = 131_072;

/**
 * Collects what is wrong in one body. Bounded, since an error must fit into a reply however many members of the body
 * are wrong: at most 500 findings and 128 K characters are kept, the first ones found.
 */
export class Findings {
  readonly #list: Finding[] = [];
  #length = 0;

  add(pointer: string, detail: string): void {
    if (this.full) return;
    const shown = pointer.length > maxPointerLength ? `${pointer.slice(0, maxPointerLength)}…` : pointer;
    this.#list.push({ pointer: shown, detail });
    this.#length += shown.length + detail.length;
  }

  /** Whether further findings would be dropped, so that looking on is pointless. */
  get full(): boolean {
    return this.#list.length >= maxFindings || this.#length >= maxTotalLength;
  }

  get any(): boolean {
    return this.#list.length > 0;
  }

  get list(): Finding[] {
    return [...this.#list];
  }

  get pointers(): string[] {
    return this.#list.map(({ pointer }) => pointer);
  }
}

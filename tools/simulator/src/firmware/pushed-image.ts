import { z } from "zod";
import { FunctionError } from "../function-error.ts";

const maxImageBytes = 100 * 1_024 * 1_024;

const Begin = z.object({
  size: z.int().min(1).max(maxImageBytes),
  commit_timeout: z.number().min(0).default(0),
});
const Write = z.object({ data: z.base64(), offset: z.int().min(0).optional() });

/** An image that arrives by `OTA.Begin`, `OTA.Write` and `OTA.End`, as mDash takes it. */
export class PushedImage {
  readonly #takesOffset: boolean;
  #image: Buffer | null = null;
  #length = 0;
  #commitTimeout = 0;

  constructor(takesOffset: boolean) {
    this.#takesOffset = takesOffset;
  }

  get length(): number {
    return this.#length;
  }

  get size(): number {
    return this.#image?.length ?? 0;
  }

  /** Where an unfinished image of this size is, a device that takes offsets goes on; another one refuses. */
  begin(params: unknown): unknown {
    const { size, commit_timeout } = parsed(Begin, params);
    const goesOn = this.#takesOffset && this.#image?.length === size;
    if (this.#image !== null && !this.#takesOffset) throw new FunctionError(500, "OTA already in progress");
    if (!goesOn) {
      this.#image = Buffer.alloc(size);
      this.#length = 0;
    }
    this.#commitTimeout = commit_timeout;
    return this.#takesOffset ? { offset: this.#length } : true;
  }

  write(params: unknown): unknown {
    const { data, offset = this.#length } = parsed(Write, params);
    const bytes = Buffer.from(data, "base64");
    if (this.#image === null) throw new FunctionError(500, "call OTA.Begin");
    if (offset > this.#length) throw new FunctionError(400, "the offset is beyond what was written");
    if (offset + bytes.length > this.#image.length) throw new FunctionError(400, "the image is too large");
    bytes.copy(this.#image, offset);
    this.#length = Math.max(this.#length, offset + bytes.length);
    return { queued: bytes.length };
  }

  /** The whole image, once; throws for half of one, which is dropped. */
  end(): { readonly image: Buffer; readonly commitTimeout: number } {
    const image = this.#image;
    const isWhole = image !== null && this.#length === image.length;
    this.#image = null;
    this.#length = 0;
    if (!isWhole) throw new FunctionError(500, "the image is not whole");
    return { image, commitTimeout: this.#commitTimeout };
  }
}

function parsed<T extends z.ZodType>(schema: T, params: unknown): z.output<T> {
  const result = schema.safeParse(params);
  if (!result.success) throw new FunctionError(400, "Invalid parameters");
  return result.data;
}

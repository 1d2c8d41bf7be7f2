import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { brotliCompress, constants, gzip } from "node:zlib";
import type { Plugin } from "vite";

const brotli = promisify(brotliCompress);
const gzipped = promisify(gzip);

/** Writes `.br` and `.gz` beside what compresses well, so that the gateway need not compress. */
export function precompress(): Plugin {
  return {
    name: "precompress",
    apply: "build",
    async writeBundle({ dir = "dist" }, bundle) {
      const texts = Object.values(bundle).filter(({ fileName }) => /\.(js|css|html|svg)$/.test(fileName));
      await Promise.all(
        texts.map(async (output) => {
          const content = Buffer.from(output.type === "chunk" ? output.code : output.source);
          const path = join(dir, output.fileName);
          const quality = { params: { [constants.BROTLI_PARAM_QUALITY]: 9 } };
          await writeFile(`${path}.br`, await brotli(content, quality));
          await writeFile(`${path}.gz`, await gzipped(content, { level: 9 }));
        }),
      );
    },
  };
}

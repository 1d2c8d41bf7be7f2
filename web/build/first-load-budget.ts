import { gzipSync } from "node:zlib";
import type { Plugin } from "vite";

/** What the first view may cost. */
interface Budget {
  /** Modules, relative to the package, that the first view loads lazily; what they import statically counts, too. */
  readonly views: readonly string[];
  /** Most bytes, gzipped, of scripts and styles together. */
  readonly bytes: number;
  /** Most bytes of the fonts of Western European text, which every view shows. */
  readonly fontBytes: number;
}

/** Prints what a browser loads before the first view is there, and fails the build above a budget. */
export function firstLoadBudget({ views, bytes, fontBytes }: Budget): Plugin {
  return {
    name: "first-load-budget",
    apply: "build",
    writeBundle(_options, bundle) {
      const files = new Set<string>();
      const take = (file: string) => {
        if (files.has(file)) return;
        files.add(file);
        const output = bundle[file];
        if (output?.type !== "chunk") return;
        for (const imported of output.imports) take(imported);
        for (const style of output.viteMetadata?.importedCss ?? []) take(style);
      };
      const chunks = Object.values(bundle).filter((output) => output.type === "chunk");
      for (const chunk of chunks) if (chunk.facadeModuleId?.endsWith("/index.html")) take(chunk.fileName);
      for (const view of views) {
        const chunk = chunks.find(({ facadeModuleId }) => facadeModuleId?.endsWith(`/${view}`));
        if (chunk === undefined) this.error(`no chunk begins with ${view}`);
        take(chunk.fileName);
      }
      let total = 0;
      for (const file of files) {
        const output = bundle[file];
        if (output !== undefined)
          total += gzipSync(output.type === "chunk" ? output.code : output.source).length;
      }
      const fonts = Object.values(bundle).filter(({ fileName }) => /latin-(?!ext).*\.woff2$/.test(fileName));
      const inFonts = fonts.reduce((sum, font) => sum + (font.type === "asset" ? font.source.length : 0), 0);
      const summary =
        `first load: ${files.size} files, ${(total / 1000).toFixed(1)} KB gzipped (budget ${bytes / 1000} KB), ` +
        `and ${(inFonts / 1000).toFixed(1)} KB of fonts (budget ${fontBytes / 1000} KB)`;
      if (total > bytes || inFonts > fontBytes) this.error(summary);
      this.info(summary);
    },
  };
}

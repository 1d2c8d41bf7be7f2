import type { Plugin } from "vite";

/** Loads a font with the page rather than after its styles; `name` begins the file's name. */
export function preloadFont(name: string): Plugin {
  return {
    name: "preload-font",
    apply: "build",
    transformIndexHtml: {
      order: "post",
      handler(_html, { bundle = {} }) {
        const font = Object.keys(bundle).find((file) => file.startsWith(`assets/${name}`));
        if (font === undefined) throw new Error(`no font begins with ${name}`);
        const attrs = { rel: "preload", as: "font", type: "font/woff2", href: `/${font}`, crossorigin: true };
        return [{ tag: "link", attrs, injectTo: "head" }];
      },
    },
  };
}

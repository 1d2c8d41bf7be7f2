import react from "@vitejs/plugin-react";
import { defineConfig } from "vite";
import { forTheBrowser } from "./build/contracts-for-the-browser.ts";
import { firstLoadBudget } from "./build/first-load-budget.ts";
import { precompress } from "./build/precompress.ts";
import { preloadFont } from "./build/preload-font.ts";

/** Where `npm run dev -w web` finds a gateway. */
const gateway = process.env.GATEWAY_URL ?? "http://127.0.0.1:8080";

export default defineConfig({
  plugins: [
    react(),
    forTheBrowser(),
    firstLoadBudget({
      views: ["src/features/devices/list/devices-tab.tsx"],
      bytes: 300_000,
      fontBytes: 115_000,
    }),
    preloadFont("inter-latin-opsz"),
    precompress(),
  ],
  build: {
    target: "es2022",
    modulePreload: { polyfill: false },
    reportCompressedSize: false,
    chunkSizeWarningLimit: 1024,
    rolldownOptions: {
      input: ["index.html", "docs.html"],
      output: {
        // One chunk, so that zod is configured before any schema: a chunk runs before those that import it.
        codeSplitting: {
          groups: [
            { name: "schemas", test: /[\\/]node_modules[\\/]zod[\\/]|[\\/]without-eval\.ts$/, priority: 2 },
            // What at least five chunks share: a small file of each costs more in headers than in content.
            {
              name: "shared",
              test: /[\\/](web|contracts)[\\/]src[\\/](?!components[\\/](data-table|folding-table|json-editor|confirmation|form-dialog|dialog|stat-strip|parse-json|whole-number-input|time-field|short-list-tab)\.)/,
              minShareCount: 5,
              priority: 1,
            },
          ],
        },
      },
    },
  },
  server: {
    proxy: {
      ...Object.fromEntries(
        ["/api", "/docs/errors", "/newcustomer", "/key-place.json"].map((path) => [
          path,
          { target: gateway, ws: true },
        ]),
      ),
      "/docs": { bypass: () => "/docs.html" },
    },
  },
});

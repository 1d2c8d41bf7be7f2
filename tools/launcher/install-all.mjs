import { fileURLToPath } from "node:url";
import { ensureInstalled } from "./install.mjs";

// For npm's scripts that run a tool which the installation of `npm start` lacks, such as the compiler.
try {
  await ensureInstalled(fileURLToPath(new URL("../..", import.meta.url)));
} catch (error) {
  console.error(error.message);
  process.exit(1);
}

import { executablesOnPath, isExecutable } from "@devmesh/launcher/nats-server/path-search";

/** Names of Chromium and its relatives; the first that is found is taken. The one without windows computes least. */
const names = [
  "chromium-headless-shell",
  "chromium",
  "chromium-browser",
  "google-chrome",
  "google-chrome-stable",
] as const;

/** Why suites in a browser are skipped where {@link findChromium} answers null. */
export const withoutChromium = `no CHROMIUM_BIN, and no ${names.join(", ")} on PATH`;

/**
 * Path of the browser for tests: `CHROMIUM_BIN`, else the first on `PATH`; null without one. Throws when
 * `CHROMIUM_BIN` cannot be run.
 */
export async function findChromium(env: NodeJS.ProcessEnv = process.env): Promise<string | null> {
  const given = env.CHROMIUM_BIN;
  if (given) {
    if (await isExecutable(given)) return given;
    throw new Error(`CHROMIUM_BIN names ${given}, which cannot be run`);
  }
  for (const name of names) {
    const [first] = await executablesOnPath(name, env.PATH);
    if (first !== undefined) return first;
  }
  return null;
}

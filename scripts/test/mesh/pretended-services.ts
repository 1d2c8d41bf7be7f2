import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { serviceNames } from "../../src/mesh/mesh.ts";

/**
 * Services that do nothing but what the launcher needs of one: they say `ready`, end on SIGTERM and when the channel closes, and
 * write down when they stop. `FAIL=<name>` makes one fail, `SILENT=<name>` makes one die without a word.
 */
export async function pretendedServices(repository: string): Promise<void> {
  for (const name of serviceNames) {
    const folder = join(repository, "services", name, "src");
    await mkdir(folder, { recursive: true });
    await writeFile(
      join(folder, "main.ts"),
      `import { appendFileSync } from "node:fs";
       const name = ${JSON.stringify(name)};
       process.on("disconnect", () => process.exit(0));
       process.on("SIGTERM", () => {
         if (process.env.STOPPED) appendFileSync(process.env.STOPPED, name + "\\n");
         process.exit(0);
       });
       setInterval(() => {}, 1000);
       if (process.env.SILENT === name) throw new TypeError("no such thing");
       if (process.env.FAIL === name) {
         process.send({ type: "failed", message: "the store is of a newer version." }, () => process.exit(1));
       } else process.send({ type: "ready", ops: "http://127.0.0.1:1" });`,
    );
  }
}

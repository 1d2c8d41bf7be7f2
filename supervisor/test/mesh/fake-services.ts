import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { serviceNames } from "@devmesh/contracts/mesh";

/**
 * Services that do nothing but what the supervisor needs of one: they say `ready`, end on SIGTERM and when the channel
 * closes, and write down when they stop. `FAIL=<name>` makes one fail, `SILENT=<name>` makes one die without a word,
 * `LOUD=<name>` makes one warn when it is ended, and the one that fails wait until it runs.
 */
export async function writeFakeServices(repository: string): Promise<void> {
  for (const name of serviceNames) {
    const folder = join(repository, "services", name, "src");
    await mkdir(folder, { recursive: true });
    await writeFile(
      join(folder, "main.ts"),
      `import { appendFileSync, existsSync, writeFileSync } from "node:fs";
       import { setTimeout as sleep } from "node:timers/promises";
       const name = ${JSON.stringify(name)};
       process.on("disconnect", () => process.exit(0));
       process.on("SIGTERM", () => {
         if (process.env.LOUD === name) console.log(JSON.stringify({ level: "warn", msg: "the bus is closed" }));
         if (process.env.STOPPED) appendFileSync(process.env.STOPPED, name + "\\n");
         process.exit(0);
       });
       setInterval(() => {}, 1000);
       if (process.env.SILENT === name) throw new TypeError("no such thing");
       const loud = process.env.LOUD_RUNS;
       if (process.env.LOUD === name) writeFileSync(loud, "");
       if (process.env.FAIL === name) {
         while (process.env.LOUD && !existsSync(loud)) await sleep(10);
         process.send({ type: "failed", message: "the store is of a newer version." }, () => process.exit(1));
       } else process.send({ type: "ready", ops: "http://127.0.0.1:1" });`,
    );
  }
}

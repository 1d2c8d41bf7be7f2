/**
 * Time from `npm start` to its `ready` line, with a new data folder and again with the same one, compiled code and
 * bundles there. `node bench/mesh-start.ts [rounds]`
 */
import { join } from "node:path";
import { launchMesh } from "@devmesh/testkit/mesh";
import { tempFolder } from "@devmesh/testkit/temp-folder";
import { type Goal, inTurns, reportFigures } from "./measure.ts";
import { numbers } from "./mesh-tenant.ts";

const rounds = Number(process.argv[2] ?? 5);
const figure = "s to ready";

await using folder = await tempFolder();
const newFolders = numbers(rounds + 1);

/** The mesh that runs: npm passes no signal on, so a benchmark that is ended ends the mesh itself. */
let group: number | undefined;
for (const signal of ["SIGINT", "SIGTERM"] as const) {
  process.on(signal, () => {
    if (group !== undefined) process.kill(-group, "SIGTERM");
    process.exit(130);
  });
}

async function start(dataDir: string) {
  const begin = performance.now();
  await using mesh = await launchMesh({ through: "npm", store: "sqlite", broker: "own", dataDir });
  group = mesh.process.pid;
  await mesh.ready();
  const seconds = (performance.now() - begin) / 1000;
  await mesh.stop();
  group = undefined;
  return { [figure]: seconds };
}

const contenders = {
  "new data folder": () => start(join(folder.path, `new-${newFolders.next().value}`)),
  "known data folder": () => start(join(folder.path, "known")),
};
const goals: Readonly<Record<keyof typeof contenders, Goal>> = {
  "new data folder": { value: 4 },
  "known data folder": { value: 2.5 },
};
const measured = await inTurns(rounds, contenders);
reportFigures(
  (Object.keys(contenders) as (keyof typeof contenders)[]).map((name) => ({
    name: figure,
    ours: { name, values: measured[name][figure] ?? [] },
    goal: goals[name],
    digits: 2,
  })),
);

import { spawn } from "node:child_process";
import { once } from "node:events";
import { parseArgs } from "node:util";
import { helpOption, runCommand, WrongUsage } from "@devmesh/supervisor/process/command";
import { tempFolder } from "@devmesh/testkit/temp-folder";
import { kubectlOf } from "./kubectl.ts";
import { type CountedPeriod, startLoad } from "./load.ts";
import { accessMesh } from "./mesh-access.ts";
import { type AppliedOverlay, appliedOverlays, writeOverlay } from "./overlay.ts";
import { prepareNamespace } from "./prepare.ts";
import { awaitReady, roll, rollable } from "./rollouts.ts";
import { smoke } from "./smoke.ts";
import { periodTable } from "./table.ts";

const usage = `Usage: npm run cluster -- [OVERLAY] [OPTION ...]

Tests a mesh in Kubernetes from outside, in the namespace devmesh of kubectl's current context: waits until all pods are ready, tries
devices, calls, shadows, records and keys, then replaces the pods of each service and each nats-server under load and counts the
requests that failed, with a line on stderr for each. With the name of an overlay (${appliedOverlays.join(", ")}) it applies
that first, and makes Secrets that are missing.

  --context NAME         another context of the kubeconfig
  --registry HOST/PATH   where the images are, and
  --tag TAG              their tag; without these as the overlay says
  --image NAME=IMAGE:TAG an image of others, such as nats=registry.example.com/nats:2.15.2-alpine; may be repeated
  --mongodb URL          with external-mongodb: that MongoDB, without a database's name
  --one-node             nats-servers may share a node, and pods request little
  --installation FILE    keeps the secrets that it makes (installation.json)
  --http URL             address of the gateway, and
  --mqtt URL             of the brokers (mqtts://HOST:PORT); without these kubectl forwards ports, each to one pod: then the
                         gateway and the brokers are not replaced, since the ports end with their pods
  --rollouts NAMES       only these, in this order, such as gateway,nats-0,nats-0; none: the load is left out
  --during COMMAND       instead of rollouts: counts while a command of the shell runs and until all pods are ready again, such as
                         an upgrade; may be repeated
  --rate N               requests a second (50)`;

interface ClusterOptions {
  readonly context: string | undefined;
  /** Null: what runs is tested as it is. */
  readonly applied: AppliedOverlay | null;
  readonly mongodb: string | undefined;
  readonly installation: string;
  readonly http: string | undefined;
  readonly mqtt: string | undefined;
  /** Undefined: all that can be rolled. */
  readonly rollouts: readonly string[] | undefined;
  readonly during: readonly string[];
  readonly rate: number;
}

function read(args: string[]): ClusterOptions | "help" {
  const { values, positionals } = parseArgs({
    args,
    allowPositionals: true,
    options: {
      context: { type: "string" },
      registry: { type: "string" },
      tag: { type: "string" },
      image: { type: "string", multiple: true, default: [] },
      mongodb: { type: "string" },
      "one-node": { type: "boolean", default: false },
      installation: { type: "string", default: "installation.json" },
      http: { type: "string" },
      mqtt: { type: "string" },
      rollouts: { type: "string" },
      during: { type: "string", multiple: true, default: [] },
      rate: { type: "string", default: "50" },
      ...helpOption,
    },
  });
  if (values.help) return "help";
  const [name, ...others] = positionals;
  const overlay = appliedOverlays.find((known) => known === name);
  if ((name !== undefined && overlay === undefined) || others.length > 0)
    throw new WrongUsage(`Say ${appliedOverlays.join(" or ")}, or none.`);
  if ((values.mongodb !== undefined) !== (overlay === "external-mongodb"))
    throw new WrongUsage("--mongodb and external-mongodb go together.");
  if ((values.http === undefined) !== (values.mqtt === undefined))
    throw new WrongUsage("--http and --mqtt go together.");
  if (values.rollouts !== undefined && values.during.length > 0)
    throw new WrongUsage("Say --rollouts or --during.");
  const rate = Number(values.rate);
  if (!Number.isInteger(rate) || rate < 1 || rate > 1_000)
    throw new WrongUsage("--rate takes a number from 1 to 1000.");
  const applied = overlay && {
    overlay,
    registry: values.registry,
    tag: values.tag,
    images: new Map(values.image.map(namedImage)),
    oneNode: values["one-node"],
  };
  const { context, mongodb, installation, http, mqtt, during } = values;
  const rollouts = values.rollouts?.split(",").filter((one) => one !== "none");
  return { context, applied: applied ?? null, mongodb, installation, http, mqtt, rollouts, during, rate };
}

function namedImage(text: string): [string, string] {
  const { name, image } = /^(?<name>[^=]+)=(?<image>.+)$/.exec(text)?.groups ?? {};
  if (name === undefined || image === undefined) throw new WrongUsage("--image takes NAME=IMAGE:TAG.");
  return [name, image];
}

const say = (line: string) => process.stdout.write(`${line}\n`);
const sayFailure = (line: string) => process.stderr.write(`${line}\n`);

async function run(options: ClusterOptions): Promise<void> {
  const { applied, mongodb, installation, http, mqtt } = options;
  const kubectl = kubectlOf(options.context);
  await using closing = new AsyncDisposableStack();
  const { path: folder } = closing.use(await tempFolder());
  if (applied !== null) {
    const withMongodb = applied.overlay === "production";
    await prepareNamespace(kubectl, { installation, withMongodb, mongodb, folder });
    await writeOverlay(folder, applied);
    // A Job cannot be changed while it is there; these may run again at any time.
    await kubectl.run(["delete", "job", "bootstrap", "mongodb-initiation", "--ignore-not-found"]);
    await kubectl.run(["apply", "-k", folder]);
    say(`${applied.overlay} is applied`);
  }
  const begunMs = performance.now();
  await awaitReady(kubectl);
  say(`all pods are ready after ${((performance.now() - begunMs) / 1_000).toFixed(0)} s`);

  const mesh = await accessMesh(kubectl, { http, mqtt }, folder, closing);
  await smoke(mesh, (step) => say(`ok  ${step}`));

  const works = options.during.map((command): LoadedWork => {
    const work = async () => {
      await shell(command);
      await awaitReady(kubectl);
    };
    return [command, work];
  });
  if (works.length === 0) {
    const throughPods = http === undefined;
    for (const name of options.rollouts ?? (await rollable(kubectl))) {
      if (throughPods && /^(gateway|nats-\d+)$/.test(name))
        say(`not replaced without --http and --mqtt: ${name}`);
      else works.push([name, () => roll(kubectl, name)]);
    }
  }
  if (works.length > 0) say(await countEach(works, () => startLoad(mesh, options.rate, sayFailure)));
}

/** What is done under load, and its name; one name may come several times. */
type LoadedWork = [name: string, work: () => Promise<void>];

/** Runs each work under the same load; the table of what the load met. Throws when something acknowledged is lost. */
async function countEach(
  works: readonly LoadedWork[],
  start: () => ReturnType<typeof startLoad>,
): Promise<string> {
  const periods: [string, CountedPeriod][] = [];
  await using load = await start();
  for (const [name, work] of works) {
    const period = await load.count(work);
    periods.push([name, period]);
    say(`${name}: ${period.requests.failed} of ${period.requests.sent} requests failed`);
  }
  const lost = await load.stop();
  if (lost.length > 0)
    throw new Error(`${periodTable(periods)}\n\nAcknowledged and not stored: ${lost.join(", ")}`);
  return `\n${periodTable(periods)}\nEverything that was acknowledged is stored.`;
}

async function shell(command: string): Promise<void> {
  const [code] = await once(spawn(command, { shell: true, stdio: "inherit" }), "exit");
  if (code !== 0) throw new Error(`the command ended with ${code}: ${command}`);
}

await runCommand({ usage, read, run });

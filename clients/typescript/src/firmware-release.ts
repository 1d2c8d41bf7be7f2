#!/usr/bin/env node
import { createHash } from "node:crypto";
import { createReadStream, openAsBlob } from "node:fs";
import { basename, extname } from "node:path";
import { parseArgs } from "node:util";
import { createDevmeshClient, type DevmeshClient, DevmeshProblem } from "./client.ts";
import type { Schemas } from "./notifications.ts";

const usage = `Usage: devmesh-firmware FILE --version VERSION (--label LABEL ... | --all) [OPTION ...]

Uploads a file of firmware, starts a job that updates the devices, prints how far it is and ends with its outcome. The
server is DEVMESH_URL (http://127.0.0.1:8080 if it is not set), the key a master key in DEVMESH_KEY.

  --label LABEL    devices that have this label; given several times, those that have all of them
  --all            all devices
  --name NAME      what the firmware is called; else the name of the file without its extension
  --via WAY        shadow (default), url or push: how devices get the file
  --reported-as V  the version that devices report, where it is not VERSION
  --signature TEXT a signature in base64, for devices that check it
  --stages LIST    the rollout in percent, such as 1,10,50
  --pause-at N     pauses the job when N percent of at least ten updates fail
  --stable TIME    how long the new version must run until it counts, such as PT5M; a minute if it is left out
  --no-wait        ends once the job has started

It can be run again after any failure: what was uploaded is used. Exit code: 0, all devices have the version; 1, some
have not, or nothing was done; 2, a wrong command line; 3, the job is paused for a person to decide.`;

/** A message for the user, without a stack. */
class ReleaseFailure extends Error {}

interface Release {
  readonly file: string;
  readonly firmware: Omit<Schemas["FirmwareInput"], "size" | "sha256">;
  readonly target: Schemas["JobTarget"];
  readonly via: Schemas["FirmwareActionInput"]["via"];
  readonly stable: string | undefined;
  readonly stages: readonly number[];
  readonly pauseAt: number | undefined;
  readonly wait: boolean;
}

const ways = ["shadow", "url", "push"] as const;

/** Throws with a sentence for the user. */
function read(args: string[]): Release | "help" {
  const { values, positionals } = parseArgs({
    args,
    allowPositionals: true,
    options: {
      version: { type: "string" },
      label: { type: "string", multiple: true, default: [] },
      all: { type: "boolean", default: false },
      name: { type: "string" },
      via: { type: "string", default: "shadow" },
      "reported-as": { type: "string" },
      signature: { type: "string" },
      stages: { type: "string" },
      "pause-at": { type: "string" },
      stable: { type: "string" },
      "no-wait": { type: "boolean", default: false },
      help: { type: "boolean", short: "h" },
    },
  });
  if (values.help) return "help";
  const { label, all, signature } = values;
  // As the server does: the firmware of an earlier run is found by both.
  const [version, name] = [values.version?.trim(), values.name?.trim()];
  const [file, ...others] = positionals;
  if (file === undefined || others.length > 0) throw new Error("One file is needed.");
  if (version === undefined) throw new Error("--version is needed.");
  if (all === label.length > 0) throw new Error("Either --label or --all is needed.");
  const via = ways.find((known) => known === values.via);
  if (via === undefined) throw new Error(`--via takes ${ways.join(", ")}.`);
  const reportedAs = values["reported-as"];
  return {
    file,
    firmware: {
      name: name ?? basename(file, extname(file)).trim(),
      version,
      ...(reportedAs !== undefined && { reported_as: reportedAs }),
      ...(signature !== undefined && { signature }),
    },
    target: { where: all ? {} : { labels: { all: label } } },
    via,
    stable: values.stable,
    stages:
      values.stages === undefined ? [] : values.stages.split(",").map((one) => percent("--stages", one)),
    pauseAt: values["pause-at"] === undefined ? undefined : percent("--pause-at", values["pause-at"]),
    wait: !values["no-wait"],
  };
}

function percent(option: string, text: string): number {
  const number = Number(text);
  if (/^\d{1,3}$/.test(text) && number >= 1 && number <= 100) return number;
  throw new Error(`${option} takes numbers from 1 to 100.`);
}

/** Size and SHA-256 of a file, which is read piece by piece. */
async function measure(file: string): Promise<Pick<Schemas["FirmwareInput"], "size" | "sha256">> {
  const hash = createHash("sha256");
  let size = 0;
  try {
    for await (const piece of createReadStream(file)) {
      hash.update(piece);
      size += piece.length;
    }
  } catch (error) {
    throw new ReleaseFailure(
      `${file} cannot be read: ${error instanceof Error ? error.message : String(error)}`,
    );
  }
  if (size === 0) throw new ReleaseFailure(`${file} is empty.`);
  return { size, sha256: hash.digest("hex") };
}

/** The firmware, uploaded now or by an earlier run. */
async function upload(
  devmesh: DevmeshClient,
  file: string,
  wanted: Schemas["FirmwareInput"],
  signal: AbortSignal,
): Promise<Schemas["Firmware"]> {
  let firmware: Schemas["Firmware"];
  try {
    firmware = (await devmesh.POST("/api/v2/firmware", { body: wanted, signal })).data;
  } catch (error) {
    if (!(error instanceof DevmeshProblem && error.reason === "firmware_exists")) throw error;
    firmware = await existing(devmesh, wanted);
  }
  const words = `${firmware.name} ${firmware.version}, ${firmware.size} bytes`;
  if (firmware.ready) {
    print(`${words}, is there already`);
    return firmware;
  }
  print(`${words}, is being uploaded`);
  return await devmesh.uploadFirmware(firmware.id, await openAsBlob(file), { signal });
}

/** The firmware of that name and version. Fails if it is another file. */
async function existing(
  devmesh: DevmeshClient,
  { name, version, sha256 }: Schemas["FirmwareInput"],
): Promise<Schemas["Firmware"]> {
  for await (const found of devmesh.firmware())
    if (found.name === name && found.version === version && found.sha256 === sha256) return found;
  throw new ReleaseFailure(`There is another file as ${name} ${version}: raise the version.`);
}

function print(line: string): void {
  process.stdout.write(`${line}\n`);
}

/** How far a job is, in a line. */
function progressOf({ state, devices, counts }: Schemas["Job"]): string {
  const { queued, sent, succeeded, ...others } = counts;
  const failed = Object.entries(others).flatMap(([name, count]) =>
    count > 0 ? [`${count} ${name.replace("_", " ")}`] : [],
  );
  const words = [`${succeeded} of ${devices} succeeded`, ...failed, `${sent} under way`, `${queued} waiting`];
  return `${state}: ${words.join(", ")}`;
}

async function release(options: Release, devmesh: DevmeshClient, signal: AbortSignal): Promise<0 | 1 | 3> {
  const { file, target, via, stable, stages, pauseAt } = options;
  const wanted = { ...options.firmware, ...(await measure(file)) };
  const firmware = await upload(devmesh, file, wanted, signal);
  const newJob: Schemas["JobInput"] = {
    name: `${firmware.name} ${firmware.version}`,
    target,
    action: { kind: "firmware", firmware_id: firmware.id, via, ...(stable !== undefined && { stable }) },
    rollout: { stages: stages.map((one) => ({ percent: one })) },
    ...(pauseAt !== undefined && { pause_at: { failed_percent: pauseAt } }),
  };
  const { devices, online, not_eligible } = await devmesh.jobs.try(newJob, { signal });
  const ineligible = not_eligible === 0 ? "" : `, ${not_eligible} do not meet what the firmware requires`;
  print(`${devices === 1 ? "1 device" : `${devices} devices`}, ${online} connected now${ineligible}`);
  if (devices === 0) throw new ReleaseFailure("No device is to be updated.");
  const { id } = await devmesh.jobs.create(newJob, { signal });
  print(`job ${id}`);
  if (!options.wait) return 0;
  let last = "";
  const onProgress = (job: Schemas["Job"]) => {
    const line = progressOf(job);
    if (line !== last) print(`${new Date().toISOString()} ${line}`);
    last = line;
  };
  const job = await devmesh.jobs.wait(id, { orPaused: true, onProgress, signal });
  if (job.state === "paused") return 3;
  return job.state === "done" && job.counts.succeeded === job.devices ? 0 : 1;
}

async function main(): Promise<number> {
  let options: Release | "help";
  try {
    options = read(process.argv.slice(2));
  } catch (error) {
    process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n\n${usage}\n`);
    return 2;
  }
  if (options === "help") {
    print(usage);
    return 0;
  }
  const { DEVMESH_URL: url = "http://127.0.0.1:8080", DEVMESH_KEY: key } = process.env;
  const stopping = new AbortController();
  for (const signal of ["SIGINT", "SIGTERM"] as const) process.once(signal, () => stopping.abort());
  try {
    if (!key) throw new ReleaseFailure("DEVMESH_KEY is not set: it is a master key.");
    return await release(options, createDevmeshClient({ url, key }), stopping.signal);
  } catch (error) {
    const message = error instanceof Error ? error.message : String(error);
    process.stderr.write(
      stopping.signal.aborted ? "Stopped; a job that has started goes on.\n" : `${message}\n`,
    );
    return 1;
  }
}

process.exitCode = await main();

import { createHash } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { isJsonObject, type Json, type JsonObject } from "@devmesh/contracts/model/json";
import type { CallAttempt } from "@devmesh/contracts/rpc-bridge";
import type { JobsFixture } from "./jobs-fixture.ts";

/** How a device with firmware behaves. */
export interface Script {
  /** The version that it runs at first. */
  readonly version: string | number;
  /** The version that the new firmware reports. */
  readonly next: string | number;
  readonly sha256: string;
  readonly size: number;
  /** Whether its `OTA.Begin` answers an offset, from which it goes on. */
  readonly offset?: boolean;
  /** What becomes of a frame, instead of its answer; it is done all the same where the result is true. */
  readonly lost?: (func: string, count: number) => CallAttempt["outcome"] | null;
  /** Milliseconds that it is away when it reboots; infinite for one that never comes back. */
  readonly awayMs?: number;
  readonly reboots?: boolean;
  /** Whether it is back before anybody sees that it was away. */
  readonly unseen?: boolean;
  /** Runs its old version again: after its reboot, or once it is committed. */
  readonly rollsBack?: "at_once" | "after_commit";
  /** Whether what it runs at first waits for its commit. */
  readonly isUncommitted?: boolean;
  /** What it answers to `OTA.Update`. */
  readonly onUpdate?: () => CallAttempt | Promise<CallAttempt>;
  /** Whether it has `OTA.Commit`; `once` for one that refuses it for what is committed, as Mongoose OS does. */
  readonly commits?: boolean | "once";
  /** Whether it commits new firmware by itself. */
  readonly commitsItself?: boolean;
}

const result = (value: Json): CallAttempt => ({ sent: true, outcome: "result", result: value });
const error = (code: number, message: string): CallAttempt => ({
  sent: true,
  outcome: "error",
  error: { code, message },
});

/** A device that runs firmware as real ones do; what it is sent is counted. */
export class ScriptedDevice {
  readonly #mesh: JobsFixture;
  readonly #script: Script;
  readonly id: string;
  version: string | number;
  /** Bytes of the image that it is getting; null outside of an update. */
  #image: Buffer[] | null = null;
  readonly #counts = new Map<string, number>();
  /** Frames in order, with their parameters. */
  readonly frames: { readonly func: string; readonly params: Json | undefined }[] = [];
  committed = 0;
  #isCommitted: boolean;
  /** Whole images that it was asked to run. */
  installed = 0;

  constructor(mesh: JobsFixture, id: string, script: Script) {
    this.#mesh = mesh;
    this.#script = script;
    this.id = id;
    this.version = script.version;
    this.#isCommitted = script.isUncommitted !== true;
    mesh.add(id, {
      online: true,
      listens: true,
      answer: (func, params) => this.#answer(func, params),
    });
  }

  get funcs(): readonly string[] {
    return this.frames.map(({ func }) => func);
  }

  count(func: string): number {
    return this.#counts.get(func) ?? 0;
  }

  async #answer(func: string, params: Json | undefined): Promise<CallAttempt> {
    this.frames.push({ func, params });
    const count = this.count(func) + 1;
    this.#counts.set(func, count);
    const lost = this.#script.lost?.(func, count) ?? null;
    const given = isJsonObject(params) ? params : {};
    const answer = await this.#run(func, given);
    return lost === null ? answer : ({ sent: true, outcome: lost } as CallAttempt);
  }

  async #run(func: string, params: JsonObject): Promise<CallAttempt> {
    const { offset = false, size, commits = true } = this.#script;
    switch (func) {
      case "Sys.GetInfo":
        return result({ fw_version: this.version });
      case "OTA.Begin":
        if (this.#image !== null && !offset) return error(500, "OTA already in progress");
        this.#image ??= [];
        return result(offset ? { offset: Buffer.concat(this.#image).length } : true);
      case "OTA.Write": {
        if (this.#image === null) return error(500, "call OTA.Begin");
        const data = Buffer.from(String(params.data), "base64");
        const at = Buffer.concat(this.#image).length;
        if (offset && params.offset !== at) return error(400, `expected offset ${at}`);
        this.#image.push(data);
        return at + data.length > size ? error(500, "too much") : result({ queued: 0 });
      }
      case "OTA.End": {
        const image = Buffer.concat(this.#image ?? []);
        this.#image = null;
        if (createHash("sha256").update(image).digest("hex") !== this.#script.sha256)
          return error(500, "invalid image");
        this.install();
        return result(true);
      }
      case "OTA.Update":
        return (await this.#script.onUpdate?.()) ?? result(true);
      case "OTA.Commit":
        if (!commits) return { sent: true, outcome: "no_such_function" };
        if (commits === "once" && this.#isCommitted) return error(-1, "");
        this.#isCommitted = true;
        this.committed++;
        if (this.#script.rollsBack === "after_commit") this.version = this.#script.version;
        return result(true);
      case "OTA.GetBootState":
        return result({ active_slot: 1, is_committed: this.#isCommitted, revert_slot: 0, commit_timeout: 0 });
      default:
        return result("ok");
    }
  }

  /** It has the whole image, and runs it after a reboot. */
  install(): void {
    this.installed++;
    this.#isCommitted = this.#script.commitsItself === true;
    if (this.#script.reboots !== false) void this.reboot(this.#script.next);
  }

  /** It goes, and comes back with a version. */
  async reboot(version: string | number): Promise<void> {
    const { awayMs = 50, rollsBack, unseen = false } = this.#script;
    const device = this.#mesh.devices.get(this.id);
    if (device === undefined) return;
    this.#image = null;
    if (unseen) {
      this.version = rollsBack === "at_once" ? this.#script.version : version;
      device.connectedAt = Date.now();
      return;
    }
    Object.assign(device, { online: false, listens: false });
    if (awayMs === Number.POSITIVE_INFINITY) return;
    await sleep(awayMs);
    // The test may have ended.
    if (this.#mesh.devices.get(this.id) !== device) return;
    this.version = rollsBack === "at_once" ? this.#script.version : version;
    await this.#mesh.connect(this.id);
  }
}

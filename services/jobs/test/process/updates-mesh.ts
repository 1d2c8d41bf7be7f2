import { createHash, randomUUID } from "node:crypto";
import type { Execution } from "@devmesh/contracts/model/execution";
import { firmwareBounds } from "@devmesh/contracts/model/firmware";
import type { JobInput } from "@devmesh/contracts/model/job";
import { createCallContext } from "@devmesh/service-kit/rpc/context";
import { eventually } from "@devmesh/testkit/eventually";
import { expect } from "@jest/globals";
import type { JobsFixture } from "./jobs-fixture.ts";
import { type Script, ScriptedDevice } from "./scripted-device.ts";

const { pieceBytes } = firmwareBounds;

/** A file of firmware, of two pieces. */
export const image = Buffer.from(Uint8Array.from({ length: pieceBytes + 5_000 }, (_, at) => (at * 7) % 251));
export const sha256 = createHash("sha256").update(image).digest("hex");

type Action = Extract<JobInput["action"], { readonly kind: "firmware" }>;
type AskedJob = Parameters<JobsFixture["createJob"]>[0];

const call = () => createCallContext({ timeoutMs: 20_000 });

/** What tests of updates do with a mesh: the image makes devices of version 1.0 run version 2.0. */
export function updatesOf(mesh: () => JobsFixture) {
  const only = async (jobId: string) => (await mesh().listJobExecutions(jobId))[0] as Execution;
  let uploaded: string | undefined;

  /** Declares the image as firmware and uploads it; answers its id. */
  async function upload(more: object = {}): Promise<string> {
    const { firmware } = mesh();
    const declared = { name: "pump", version: `2.0-${randomUUID()}`, reported_as: "2.0", ...more };
    const created_by = { kind: "master", key_id: "k" } as const;
    const file = { ...declared, size: image.length, sha256 };
    const { id } = await firmware.createFirmware({ firmware: file, created_by }, call());
    const upload = randomUUID();
    for (let number = 0; number * pieceBytes < image.length; number++) {
      const piece = image.subarray(number * pieceBytes, (number + 1) * pieceBytes);
      await firmware.putContent({ id, upload, number, data: piece.toString("base64") }, call());
    }
    await firmware.endContent({ id, upload }, call());
    return id;
  }

  return {
    upload,

    add: (id: string, more: Partial<Script> = {}) =>
      new ScriptedDevice(mesh(), id, { version: "1.0", next: "2.0", sha256, size: image.length, ...more }),

    /** Creates a job that updates all devices, by default shortly and with the same image; answers its id. */
    async create(
      action: Partial<Action> & Pick<Action, "via">,
      more: Partial<AskedJob> = {},
    ): Promise<string> {
      uploaded ??= await upload();
      const job = await mesh().createJob({
        target: { ids: [...mesh().devices.keys()] },
        action: { kind: "firmware", firmware_id: uploaded, stable: "PT0S", chunk: 16_000, ...action },
        retry: { after: "PT1S" },
        ...more,
      });
      return job.id;
    },

    /** The first execution of a job. */
    only,

    /** Waits until the first execution of a job is so. */
    becomes: (jobId: string, wanted: Partial<Execution>) =>
      eventually(async () => {
        const one = await only(jobId);
        expect(one).toMatchObject(wanted);
        return one;
      }),
  };
}

import { randomUUID } from "node:crypto";
import { jobs as contract } from "@devmesh/contracts/jobs";
import { type Firmware, firmwareBounds } from "@devmesh/contracts/model/firmware";
import { firmware as routes } from "@devmesh/contracts/rest/firmware";
import type { Clock } from "@devmesh/service-kit/clock";
import { ServiceError } from "@devmesh/service-kit/errors";
import { type CallContext, createCallContext } from "@devmesh/service-kit/rpc/context";
import { BriefCache } from "../firmware/brief-cache.ts";
import type { createDownloads } from "../firmware/downloads.ts";
import type { AnswerContent } from "../firmware/firmware-content.ts";
import type { ConcurrencyLimit } from "../http/concurrency-limit.ts";
import { json, noContent } from "../http/exchange.ts";
import { leadingString } from "../http/json-bytes.ts";
import { answerList } from "../http/paged-list.ts";
import type { GatewayClients, Handlers } from "./handlers.ts";

/** How long one piece may take to be stored, and a whole content to be read back; in milliseconds. */
const pieceMs = 5_000;
const endMs = 60_000;

/** How long what is known of a content is used without asking again: it never changes, but is deleted. */
const knownMs = 1_000;
const maxKnown = 1_000;

export interface FirmwareHandlerOptions {
  readonly jobs: GatewayClients["jobs"];
  readonly answerContent: AnswerContent;
  readonly download: ReturnType<typeof createDownloads>["answer"];
  readonly uploads: ConcurrencyLimit;
  readonly clock: Clock;
}

/** Files that devices can run (api.md, Firmware). */
export function firmwareHandlers(options: FirmwareHandlerOptions): Handlers<keyof typeof routes> {
  const { jobs, answerContent, download, uploads, clock } = options;
  const known = new BriefCache<Firmware>({ ttlMs: knownMs, maxEntries: maxKnown, clock });

  async function readReady(id: string, { trace }: CallContext): Promise<Firmware> {
    using call = createCallContext({ timeoutMs: pieceMs, trace, clock });
    const firmware = await jobs.readFirmware({ id }, call);
    if (firmware.ready) return firmware;
    const { code, when } = contract.methods.readContent.errors.content_not_found;
    throw new ServiceError({ code, reason: "content_not_found", message: when });
  }

  /** Removes what has arrived of an upload, at once; the service would do it after an hour. */
  async function drop(id: string, upload: string): Promise<void> {
    using call = createCallContext({ timeoutMs: endMs, clock });
    await jobs.endContent({ id, upload }, call).catch(() => undefined);
  }

  return {
    async createFirmware({ body, keyId = "", call }) {
      const created_by = { kind: "master", key_id: keyId } as const;
      const bytes = await jobs.bytes.createFirmware({ firmware: body, created_by }, call);
      const id = leadingString(bytes, "id");
      const headers = { Location: routes.readFirmware.path.replace(":id", id) };
      return { ...json(bytes, { status: 201, headers }), created: id };
    },

    listFirmware: (request) => answerList(jobs.bytes.listFirmware, routes.listFirmware.path, request, null),

    readFirmware: async ({ params, call }) => json(await jobs.bytes.readFirmware({ id: params.id }, call)),

    async deleteFirmware({ params, call }) {
      await jobs.bytes.deleteFirmware({ id: params.id }, call);
      known.forget(params.id);
      return noContent;
    },

    async uploadFirmware({ params: { id }, keyId = "", upload: body, call, within }) {
      const release = uploads.acquire(keyId, "master");
      const upload = randomUUID();
      let sent = 0;
      try {
        const { size, ready } = await jobs.readFirmware({ id }, call);
        if (ready) throw refusal("content_exists");
        if ((body.declaredBytes ?? size) !== size) throw refusal("content_mismatch");
        for await (const piece of body.pieces(firmwareBounds.pieceBytes)) {
          const number = sent++;
          const data = piece.toString("base64");
          await within(pieceMs, (call) => jobs.bytes.putContent({ id, upload, number, data }, call));
        }
        return json(await within(endMs, (call) => jobs.bytes.endContent({ id, upload }, call)));
      } catch (error) {
        if (sent > 0) void drop(id, upload);
        throw error;
      } finally {
        release();
      }
    },

    async readFirmwareContent({ params: { id }, method, header, call }) {
      const firmware = await known.get(id, () => readReady(id, call));
      return answerContent({ method, header }, firmware, { via: "key" });
    },

    downloadFirmware: ({ params, method, header, address, call }) =>
      download({ ticket: params.ticket, address, method, header, call }),
  };
}

function refusal(reason: "content_exists" | "content_mismatch"): ServiceError {
  const { code, when } = contract.methods.putContent.errors[reason];
  return new ServiceError({ code, reason, message: when });
}

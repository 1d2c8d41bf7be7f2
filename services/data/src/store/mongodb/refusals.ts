import type { DataMessage, DataStore } from "../data-store.ts";
import type { Collections } from "./collections.ts";
import type { Writer } from "./writer.ts";

type RefusalMethods = Pick<
  DataStore,
  "refuseDevice" | "finishPurge" | "unfinishedPurges" | "admitDevice" | "forgetAdmissions"
>;

/** Devices whose messages are refused. */
export interface Refusals extends RefusalMethods {
  /** Which of these messages may be stored; valid under the lease of their batch. */
  admitted(messages: readonly DataMessage[]): Promise<(message: DataMessage) => boolean>;
}

/** Refusals in a database. */
export function createRefusals({ run, refusals }: Collections, writer: Writer): Refusals {
  return {
    async admitted(messages) {
      const devices = [...new Set(messages.map(({ deviceId }) => deviceId))];
      const found = await run((options) => refusals.find({ _id: { $in: devices } }, options).toArray());
      const admissions = new Map(found.map(({ _id, admitted }) => [_id, admitted?.getTime() ?? null]));
      return ({ deviceId, timestamp }) => {
        const from = admissions.get(deviceId);
        return from === undefined || (from !== null && timestamp > from);
      };
    },
    async refuseDevice(deviceId) {
      // Under the lease: a batch that found the device admitted has ended, or can no longer commit.
      await writer.write(0, async () => {
        await run((options) =>
          refusals.updateOne(
            { _id: deviceId },
            { $set: { purged: false, admitted: null } },
            { upsert: true, ...options },
          ),
        );
      });
    },
    async finishPurge(deviceId) {
      await run((options) => refusals.updateOne({ _id: deviceId }, { $set: { purged: true } }, options));
    },
    async unfinishedPurges() {
      const found = await run((options) =>
        refusals.find({ purged: false }, { ...options, hint: "by_purge" }).toArray(),
      );
      return found.map(({ _id }) => _id);
    },
    async admitDevice(deviceId, moment) {
      await run((options) =>
        refusals.updateOne(
          { _id: deviceId, admitted: null },
          { $set: { admitted: new Date(moment) } },
          options,
        ),
      );
    },
    async forgetAdmissions(moment) {
      await run((options) =>
        refusals.deleteMany({ purged: true, admitted: { $lt: new Date(moment) } }, options),
      );
    },
  };
}

import type { MongoStore } from "@devmesh/store/mongodb";
import type { DataMessage, DataStore } from "../data-store.ts";
import type { Collections } from "./collections.ts";
import { asWriter } from "./deadline.ts";
import type { Writer } from "./writer.ts";

type PortMethods = Pick<
  DataStore,
  "refuseDevice" | "finishPurge" | "unfinishedPurges" | "admitDevice" | "forgetAdmissions"
>;

/** Devices whose messages are refused. */
export interface Refusals extends PortMethods {
  /** Which of these messages may be stored; to be asked in the batch's turn. */
  admitted(messages: readonly DataMessage[]): Promise<(message: DataMessage) => boolean>;
}

/** The refusals of a database. */
export function createRefusals(store: MongoStore, { refusals }: Collections, writer: Writer): Refusals {
  return {
    async admitted(messages) {
      const devices = [...new Set(messages.map(({ deviceId }) => deviceId))];
      const found = await asWriter(store, (options) =>
        refusals.find({ _id: { $in: devices } }, options).toArray(),
      );
      const admissions = new Map(found.map(({ _id, admitted }) => [_id, admitted?.getTime() ?? null]));
      return ({ deviceId, timestamp }) => {
        const from = admissions.get(deviceId);
        return from === undefined || (from !== null && timestamp > from);
      };
    },
    async refuseDevice(deviceId) {
      // In a turn of its own: a batch that found the device admitted has ended before, or can no longer commit.
      await writer.takeTurn(0, async () => {
        await asWriter(store, (options) =>
          refusals.updateOne(
            { _id: deviceId },
            { $set: { purged: false, admitted: null } },
            { upsert: true, ...options },
          ),
        );
      });
    },
    async finishPurge(deviceId) {
      await asWriter(store, (options) =>
        refusals.updateOne({ _id: deviceId }, { $set: { purged: true } }, options),
      );
    },
    async unfinishedPurges() {
      const found = await asWriter(store, (options) =>
        refusals.find({ purged: false }, { ...options, hint: "by_purge" }).toArray(),
      );
      return found.map(({ _id }) => _id);
    },
    async admitDevice(deviceId, moment) {
      await asWriter(store, (options) =>
        refusals.updateOne(
          { _id: deviceId, admitted: null },
          { $set: { admitted: new Date(moment) } },
          options,
        ),
      );
    },
    async forgetAdmissions(moment) {
      await asWriter(store, (options) =>
        refusals.deleteMany({ purged: true, admitted: { $lt: new Date(moment) } }, options),
      );
    },
  };
}

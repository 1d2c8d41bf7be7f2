import type { Leases } from "./leases.ts";
import { type MongoStore, unlessDuplicate } from "./mongodb.ts";

interface LeaseDocument {
  /** The name of the lease. */
  readonly _id: string;
  readonly holder: string;
  /** Unix milliseconds of the server's clock. */
  readonly until: number;
}

/** Leases in a database that all replicas share. */
export function createMongoLeases({ db, run }: MongoStore): Leases {
  const leases = db.collection<LeaseDocument>("leases");
  return {
    async lease(name, holder, forMs, signal) {
      const [found, { localTime }] = await Promise.all([
        run(signal, () => leases.findOne({ _id: name }, { signal })),
        run(signal, () => db.command({ hello: 1 }, { signal })),
      ]);
      const now = Number(localTime);
      const until = now + forMs;
      if (found === null)
        return await unlessDuplicate(run(signal, () => leases.insertOne({ _id: name, holder, until })));
      if (found.holder !== holder && found.until > now) return false;
      const { matchedCount } = await run(signal, () =>
        leases.updateOne(
          { _id: name, holder: found.holder, until: found.until },
          { $set: { holder, until } },
        ),
      );
      return matchedCount === 1;
    },

    async release(name, holder, signal) {
      await run(signal, () => leases.deleteOne({ _id: name, holder }));
    },
  };
}

import type { MongoStore } from "@devmesh/store/mongodb";

interface Actor {
  /** Resolves when the actor stands before a call of the database, or has ended. */
  arrived: PromiseWithResolvers<void>;
  /** Lets the call happen that it stands before, and resolves when it has. */
  next: (() => Promise<void>) | null;
}

/**
 * Runs several pieces of work on one database, of which only one makes a call at a time: each number of the schedule
 * says whose turn it is. Once it is used up, or the one it names has ended, they go on as they come.
 */
export async function interleave<T>(
  store: MongoStore,
  schedule: readonly number[],
  works: readonly ((store: MongoStore) => Promise<T>)[],
): Promise<T[]> {
  let isFree = false;
  const actors = works.map((): Actor => ({ arrived: Promise.withResolvers(), next: null }));

  function gated(actor: Actor): MongoStore {
    return {
      ...store,
      async run(signal, work) {
        if (isFree) return await store.run(signal, work);
        const turn = Promise.withResolvers<void>();
        const done = Promise.withResolvers<void>();
        actor.next = () => {
          actor.next = null;
          actor.arrived = Promise.withResolvers();
          turn.resolve();
          return done.promise;
        };
        actor.arrived.resolve();
        await turn.promise;
        try {
          return await store.run(signal, work);
        } finally {
          done.resolve();
        }
      },
    };
  }

  const results = actors.map(async (actor, at) => {
    try {
      const work = works[at];
      if (work === undefined) throw new Error("an actor without work");
      return await work(gated(actor));
    } finally {
      actor.arrived.resolve();
    }
  });
  for (const at of schedule) {
    const actor = actors[at];
    await actor?.arrived.promise;
    await actor?.next?.();
  }
  isFree = true;
  for (const actor of actors) void actor.next?.();
  return await Promise.all(results);
}

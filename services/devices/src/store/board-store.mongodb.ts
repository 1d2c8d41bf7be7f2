import type { Board, BoardPanel } from "@devmesh/contracts/model/board";
import { type CollectionDeclaration, type MongoStore, unlessDuplicate } from "@devmesh/store/mongodb";
import type { BoardStore } from "./board-store.ts";

/** A board in one of as many places as there may be boards, so that boards created together are not too many. */
interface BoardRow extends Omit<Board, "panels"> {
  /** Its place, from 0. */
  readonly _id: number;
  readonly panel_count: number;
  /** Compact JSON: member names of conditions could be taken for operators. */
  readonly panels: string;
}

export const boardCollection = {
  name: "boards",
  indexes: [{ name: "one_of_id", key: { id: 1 }, unique: true }],
} as const satisfies CollectionDeclaration;

/** Boards in the MongoDB database of devices. */
export function createMongoBoardStore({ db, run }: Pick<MongoStore, "db" | "run">): BoardStore {
  const boards = db.collection<BoardRow>(boardCollection.name);

  return {
    async insertBoard({ panels, ...board }, most, signal) {
      for (;;) {
        const rows = await run(signal, () => boards.find({}, { projection: { _id: 1 }, signal }).toArray());
        const taken = new Set(rows.map(({ _id }) => _id));
        const place = Array.from({ length: most }, (_, nth) => nth).find((nth) => !taken.has(nth));
        if (place === undefined) return false;
        const row = { _id: place, ...board, ...panelMembers(panels) };
        if (await unlessDuplicate(run(signal, () => boards.insertOne(row)))) return true;
      }
    },

    async listBoards(signal) {
      const rows = await run(signal, () =>
        boards
          .find({}, { projection: { panels: 0 }, signal })
          .sort({ created_at: 1, _id: 1 })
          .toArray(),
      );
      return rows.map(({ _id, panel_count, ...board }) => ({ ...board, panels: panel_count }));
    },

    async findBoard(id, signal) {
      const row = await run(signal, () =>
        boards.findOne({ id }, { projection: { _id: 0, panel_count: 0 }, signal }),
      );
      if (row === null) return null;
      const { panels, ...board } = row;
      return { ...board, panels: JSON.parse(panels) };
    },

    async replaceBoard({ panels, id, revision, name, changed_at }, signal) {
      const changed = { revision, name, changed_at, ...panelMembers(panels) };
      const { matchedCount } = await run(signal, () =>
        boards.updateOne({ id, revision: revision - 1 }, { $set: changed }),
      );
      return matchedCount === 1;
    },

    async removeBoard(id, signal) {
      const { deletedCount } = await run(signal, () => boards.deleteOne({ id }));
      return deletedCount === 1;
    },
  };
}

function panelMembers(panels: readonly BoardPanel[]) {
  return { panel_count: panels.length, panels: JSON.stringify(panels) };
}

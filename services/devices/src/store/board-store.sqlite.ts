import type { DatabaseSync } from "node:sqlite";
import type { Board, BoardPanel, ListedBoard } from "@devmesh/contracts/model/board";
import type { GroupCommit } from "@devmesh/store/group-commit";
import { unlessAborted } from "@devmesh/store/sqlite";
import type { BoardStore } from "./board-store.ts";

export const boardsMigration = `
  CREATE TABLE boards (
    position INTEGER PRIMARY KEY AUTOINCREMENT,
    id TEXT NOT NULL UNIQUE,
    name TEXT NOT NULL,
    revision INTEGER NOT NULL,
    created_at TEXT NOT NULL,
    changed_at TEXT NOT NULL,
    panel_count INTEGER NOT NULL,
    panels TEXT NOT NULL
  ) STRICT;
  `;

/** Boards in the SQLite file of devices. */
export function createSqliteBoardStore(db: DatabaseSync, commits: GroupCommit): BoardStore {
  const columns = "id, name, revision, created_at, changed_at";
  const insert = db.prepare(`INSERT INTO boards (${columns}, panel_count, panels)
    SELECT :id, :name, :revision, :created_at, :changed_at, :panel_count, :panels
    WHERE (SELECT count(*) FROM boards) < :most`);
  const list = db.prepare(`SELECT ${columns}, panel_count AS panels FROM boards ORDER BY position`);
  const find = db.prepare(`SELECT ${columns}, panels FROM boards WHERE id = ?`);
  const replace = db.prepare(`UPDATE boards SET name = :name, revision = :revision, changed_at = :changed_at,
    panel_count = :panel_count, panels = :panels WHERE id = :id AND revision = :revision - 1`);
  const remove = db.prepare("DELETE FROM boards WHERE id = ?");

  return {
    insertBoard({ panels, ...board }, most, signal) {
      const row = { ...board, ...panelColumns(panels), most };
      return commits.run(() => insert.run(row).changes === 1, signal);
    },

    listBoards: unlessAborted(() => list.all().map((row) => ({ ...row }) as unknown as ListedBoard)),

    findBoard: unlessAborted((id) => {
      const row = find.get(id);
      return row === undefined ? null : ({ ...row, panels: JSON.parse(row.panels as string) } as Board);
    }),

    replaceBoard({ panels, created_at: _, ...board }, signal) {
      const row = { ...board, ...panelColumns(panels) };
      return commits.run(() => replace.run(row).changes === 1, signal);
    },

    removeBoard: (id, signal) => commits.run(() => remove.run(id).changes === 1, signal),
  };
}

function panelColumns(panels: readonly BoardPanel[]) {
  return { panel_count: panels.length, panels: JSON.stringify(panels) };
}

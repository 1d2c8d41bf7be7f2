import { randomUUID } from "node:crypto";
import type { devices } from "@devmesh/contracts/devices";
import { boardBounds } from "@devmesh/contracts/model/board";
import type { Clock } from "@devmesh/service-kit/clock";
import type { Implementation } from "@devmesh/service-kit/rpc/implementation";
import type { BoardStore } from "../store/board-store.ts";

/** Options of the boards. */
export interface BoardsOptions {
  readonly store: BoardStore;
  readonly clock: Clock;
}

type BoardMethods = "listBoards" | "createBoard" | "readBoard" | "patchBoard" | "deleteBoard";

/** The boards (ADR 37). A change is one compare-and-set of the board. */
export function createBoards({
  store,
  clock,
}: BoardsOptions): Pick<Implementation<typeof devices>, BoardMethods> {
  return {
    listBoards: (_input, { signal }) => store.listBoards(signal),

    async createBoard(input, ctx) {
      const now = clock.now().toISOString();
      const board = { id: randomUUID(), ...input, revision: 1, created_at: now, changed_at: now };
      if (await store.insertBoard(board, boardBounds.boards, ctx.signal)) return board;
      return ctx.fail("too_many_boards");
    },

    async readBoard({ id }, ctx) {
      return (await store.findBoard(id, ctx.signal)) ?? ctx.fail("board_not_found");
    },

    async patchBoard({ id, name, panels, revision }, ctx) {
      for (;;) {
        const before = await store.findBoard(id, ctx.signal);
        if (before === null) return ctx.fail("board_not_found");
        if (revision !== undefined && revision !== before.revision)
          return ctx.fail("board_changed", { revision: before.revision });
        const made = {
          ...before,
          name: name ?? before.name,
          panels: panels ?? before.panels,
          revision: before.revision + 1,
          changed_at: clock.now().toISOString(),
        };
        if (await store.replaceBoard(made, ctx.signal)) return made;
      }
    },

    async deleteBoard({ id }, ctx) {
      return (await store.removeBoard(id, ctx.signal)) ? {} : ctx.fail("board_not_found");
    },
  };
}

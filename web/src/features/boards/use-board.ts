import type { Board, BoardPanel } from "@devmesh/contracts/model/board";
import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useRef, useState } from "react";
import { useApi } from "../../api/api-context.tsx";
import { ApiProblem } from "../../api/api-problem.ts";
import { queryKeys } from "../../api/query-keys.ts";
import { useReading } from "../../api/use-reading.ts";

/** How often boards are read while they are shown, in milliseconds: no frame reports them. */
const readAgainMs = 15_000;

/** A change of a board; `panels` replaces all of them. */
interface BoardChange {
  readonly name?: string;
  readonly panels?: readonly BoardPanel[];
}

/** A board, and what changes it. */
interface UsedBoard {
  /** As it is shown, with changes that are not saved yet; undefined before it is read. */
  readonly board: Board | undefined;
  readonly error: unknown;
  readonly readAgain: () => void;
  /**
   * Shows a change and saves it. It is made to the shown board, or to that of an earlier revision, and refused if
   * somebody else's change came first.
   */
  readonly change: (change: BoardChange, revision?: number) => void;
  readonly isSaving: boolean;
  /** Why the last change was not saved; null if it was, or is being. */
  readonly failure: unknown;
  /** Somebody else changed the board before the last change, which is lost. */
  readonly isConflict: boolean;
  /** Saves again what a failure of the mesh left unsaved; undefined where there is nothing. */
  readonly saveAgain: (() => void) | undefined;
}

/** The boards, oldest first. */
export function useBoards() {
  const api = useApi();
  return useReading({
    queryKey: queryKeys.boards,
    queryFn: ({ signal }) => api.call("listBoards", { signal }),
    staleTime: 0,
    refetchInterval: readAgainMs,
  });
}

/** One board: read again while it is shown, changed at once, and saved in the order of the changes. */
export function useBoard(id: string): UsedBoard {
  const api = useApi();
  const queries = useQueryClient();
  const queryKey = queryKeys.board(id);
  const query = useReading({
    queryKey,
    queryFn: ({ signal }) => api.call("readBoard", { params: { id }, signal }),
    staleTime: 0,
    refetchInterval: readAgainMs,
  });
  /** What is not saved yet. */
  const [draft, setDraft] = useState<BoardChange | null>(null);
  /** What is to be sent next, and the revision that it was made to. */
  const next = useRef<BoardChange | null>(null);
  const base = useRef(0);
  /** The newest revision, and the earliest one that only changes made here have led from to it. */
  const own = useRef({ from: 0, to: 0 });
  const isRunning = useRef(false);
  const saving = useMutation({
    mutationFn: async () => {
      // Changes that are made while one is sent are sent together.
      for (let change = next.current; change !== null; change = next.current) {
        next.current = null;
        const { name, panels } = change;
        const board = await api.call("patchBoard", {
          params: { id },
          body: {
            revision: base.current,
            ...(name !== undefined && { name }),
            ...(panels !== undefined && { panels: [...panels] }),
          },
        });
        const { from, to } = own.current;
        own.current = { from: to === base.current ? from : base.current, to: board.revision };
        base.current = board.revision;
        await queries.cancelQueries({ queryKey });
        queries.setQueryData(queryKey, board);
      }
      isRunning.current = false;
      setDraft(null);
      void queries.invalidateQueries({ queryKey: queryKeys.boards });
    },
    onError(error) {
      isRunning.current = false;
      next.current = null;
      if (!isRefusal(error)) return;
      setDraft(null);
      void queries.invalidateQueries({ queryKey });
    },
  });
  const { data } = query;
  const run = () => {
    if (isRunning.current) return;
    isRunning.current = true;
    saving.mutate();
  };
  return {
    board: data && {
      ...data,
      ...(draft?.name !== undefined && { name: draft.name }),
      panels: [...(draft?.panels ?? data.panels)],
    },
    error: query.error,
    readAgain: () => void query.refetch(),
    change(change, revision) {
      if (data === undefined) return;
      if (!isRunning.current && draft === null) {
        const { from, to } = own.current;
        const read = revision ?? data.revision;
        base.current = from <= read && read < to ? to : read;
      }
      const whole = { ...draft, ...change };
      next.current = whole;
      setDraft(whole);
      run();
    },
    isSaving: saving.isPending,
    failure: saving.error,
    isConflict: saving.error instanceof ApiProblem && saving.error.reason === "board_changed",
    saveAgain:
      draft === null || saving.error === null
        ? undefined
        : () => {
            next.current = draft;
            run();
          },
  };
}

/** The server has decided: the same change would be refused again. */
function isRefusal(error: Error): boolean {
  return error instanceof ApiProblem && error.status < 500 && error.status !== 429;
}

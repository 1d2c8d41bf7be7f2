import type { Board, ListedBoard } from "@devmesh/contracts/model/board";

/** Boards, a document each. */
export interface BoardStore {
  /** Stores a new board; false when there are `most` already. */
  insertBoard(board: Board, most: number, signal: AbortSignal): Promise<boolean>;
  /** The boards without their panels, the oldest first. */
  listBoards(signal: AbortSignal): Promise<ListedBoard[]>;
  findBoard(id: string, signal: AbortSignal): Promise<Board | null>;
  /** Replaces the board that has the revision before that of `board`; false when there is none. */
  replaceBoard(board: Board, signal: AbortSignal): Promise<boolean>;
  /** False when there is none. */
  removeBoard(id: string, signal: AbortSignal): Promise<boolean>;
}

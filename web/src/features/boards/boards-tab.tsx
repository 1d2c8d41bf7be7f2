import type { ListedBoard } from "@devmesh/contracts/model/board";
import { Suspense } from "react";
import { useApi } from "../../api/api-context.tsx";
import type { Column } from "../../components/data-table.tsx";
import { lazyView } from "../../components/lazy-view.ts";
import { countText } from "../../components/number-text.ts";
import { RelativeTime } from "../../components/relative-time.tsx";
import { RowLink } from "../../components/row-link.tsx";
import { ShortListTab } from "../../components/short-list-tab.tsx";
import { useBoards } from "./use-board.ts";

const CreateBoard = lazyView(async () => (await import("./name-board.tsx")).CreateBoard);

const columns: readonly Column<ListedBoard>[] = [
  {
    heading: "Name",
    namesRow: true,
    cell: ({ id, name }) => (
      <RowLink href={`/boards/${id}`} lines={2}>
        {name}
      </RowLink>
    ),
  },
  { heading: "Panels", style: { ta: "end" }, cell: ({ panels }) => countText(panels) },
  { heading: "Changed", cell: ({ changed_at }) => <RelativeTime at={changed_at} /> },
];

/** Charts and values that people look at together, each board under a name and an address. */
export function BoardsTab() {
  const api = useApi();
  const query = useBoards();
  return (
    <ShortListTab
      title="Boards"
      noun="board"
      query={query}
      filterPlaceholder="Name"
      textsOf={textsOfBoard}
      none="A board shows charts and values of devices side by side. It has an address for colleagues, and fills the screen of a wall."
      columns={columns}
      minWidth={420}
      removal={{
        action: "Delete",
        label: ({ name }) => `Delete the board ${name}`,
        consequence: () => "It is gone for all who sign in here. The numbers that it shows stay.",
        run: ({ id }) => api.call("deleteBoard", { params: { id } }),
      }}
      creation="New board"
      creationDialog={(onClose) => (
        <Suspense>
          <CreateBoard onClose={onClose} />
        </Suspense>
      )}
    />
  );
}

/** What the filter of the list searches. */
function textsOfBoard({ name }: ListedBoard): readonly (string | null)[] {
  return [name];
}

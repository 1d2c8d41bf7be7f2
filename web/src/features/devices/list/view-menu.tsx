import { Button } from "@mantine/core";
import { useDisclosure } from "@mantine/hooks";
import { Bookmark, BookmarkPlus, ChevronDown } from "lucide-react";
import { Suspense, useState } from "react";
import { lazyView } from "../../../components/lazy-view.ts";
import { isView, useSavedViews, useViewQuery } from "../shared/saved-views.ts";

const NameView = lazyView(async () => (await import("./name-view.tsx")).NameView);
const DeleteView = lazyView(async () => (await import("./delete-view.tsx")).DeleteView);

const ViewActions = lazyView(async () => (await import("./view-actions.tsx")).ViewActions);

/** Saves the shown list as a view; of one that is saved, renames or deletes it. */
export function ViewMenu() {
  const query = useViewQuery();
  const views = useSavedViews();
  const [naming, name] = useDisclosure(false);
  const [deleting, deletion] = useDisclosure(false);
  const shown = views.find((view) => isView(view, query));
  return (
    <>
      {shown === undefined ? (
        query !== "" && (
          <Button
            size="xs"
            variant="default"
            leftSection={<BookmarkPlus size={15} aria-hidden="true" />}
            onClick={name.open}
          >
            Save view
          </Button>
        )
      ) : (
        <ShownView key={shown.id} name={shown.name} onRename={name.open} onDelete={deletion.open} />
      )}
      <Suspense>
        {naming && <NameView renamed={shown ?? null} query={query} onClose={name.close} />}
        {deleting && shown !== undefined && <DeleteView view={shown} onClose={deletion.close} />}
      </Suspense>
    </>
  );
}

/** Properties of {@link ShownView}. */
interface ShownViewProps {
  readonly name: string;
  readonly onRename: () => void;
  readonly onDelete: () => void;
}

/** The name of the shown view; its menu is loaded when it is first opened. */
function ShownView({ name, ...actions }: ShownViewProps) {
  const [wanted, setWanted] = useState(false);
  const button = (
    <Button
      size="xs"
      variant="default"
      maw={220}
      leftSection={<Bookmark size={15} aria-hidden="true" />}
      rightSection={<ChevronDown size={15} aria-hidden="true" />}
      aria-label={`View ${name}`}
      onClick={() => setWanted(true)}
    >
      {name}
    </Button>
  );
  if (!wanted) return button;
  return (
    <Suspense fallback={button}>
      <ViewActions {...actions}>{button}</ViewActions>
    </Suspense>
  );
}

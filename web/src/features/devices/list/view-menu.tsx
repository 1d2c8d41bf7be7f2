import { Button, Menu } from "@mantine/core";
import { useDisclosure } from "@mantine/hooks";
import { Bookmark, BookmarkPlus, ChevronDown, Pencil, Trash2 } from "lucide-react";
import { Suspense } from "react";
import { lazyView } from "../../../components/lazy-view.ts";
import { isView, useSavedViews, useViewQuery } from "../shared/saved-views.ts";

const NameView = lazyView(async () => (await import("./name-view.tsx")).NameView);
const DeleteView = lazyView(async () => (await import("./delete-view.tsx")).DeleteView);

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
        <Menu position="bottom-start" width={180}>
          <Menu.Target>
            <Button
              size="xs"
              variant="default"
              maw={220}
              leftSection={<Bookmark size={15} aria-hidden="true" />}
              rightSection={<ChevronDown size={15} aria-hidden="true" />}
              aria-label={`View ${shown.name}`}
            >
              {shown.name}
            </Button>
          </Menu.Target>
          <Menu.Dropdown>
            <Menu.Item leftSection={<Pencil size={16} />} onClick={name.open}>
              Rename
            </Menu.Item>
            <Menu.Item data-danger leftSection={<Trash2 size={16} />} onClick={deletion.open}>
              Delete the view
            </Menu.Item>
          </Menu.Dropdown>
        </Menu>
      )}
      <Suspense>
        {naming && <NameView renamed={shown ?? null} query={query} onClose={name.close} />}
        {deleting && shown !== undefined && <DeleteView view={shown} onClose={deletion.close} />}
      </Suspense>
    </>
  );
}

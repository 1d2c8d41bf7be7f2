import { Menu } from "@mantine/core";
import { Pencil, Trash2 } from "lucide-react";
import type { ReactElement } from "react";

/** Properties of {@link ViewActions}. */
interface ViewActionsProps {
  readonly onRename: () => void;
  readonly onDelete: () => void;
  /** The button that opens it. */
  readonly children: ReactElement;
}

/** What can be done with a saved view; open when it is first shown. */
export function ViewActions({ onRename, onDelete, children }: ViewActionsProps) {
  return (
    <Menu defaultOpened position="bottom-start" width={180} returnFocus>
      <Menu.Target>{children}</Menu.Target>
      <Menu.Dropdown>
        <Menu.Item leftSection={<Pencil size={16} />} onClick={onRename}>
          Rename
        </Menu.Item>
        <Menu.Item data-danger leftSection={<Trash2 size={16} />} onClick={onDelete}>
          Delete the view
        </Menu.Item>
      </Menu.Dropdown>
    </Menu>
  );
}

import { Menu } from "@mantine/core";
import { Ellipsis } from "lucide-react";
import type { ReactNode } from "react";
import { IconButton } from "./icon-button.tsx";

/** Properties of {@link MoreActions}. */
interface MoreActionsProps {
  /** Items of the menu. */
  readonly children: ReactNode;
}

/** What is done rarely to what a page is about, in a menu at the end of its header. */
export function MoreActions({ children }: MoreActionsProps) {
  return (
    <Menu position="bottom-end" width={220}>
      <Menu.Target>
        <IconButton label="More actions" variant="default" size="lg">
          <Ellipsis size={16} />
        </IconButton>
      </Menu.Target>
      <Menu.Dropdown>{children}</Menu.Dropdown>
    </Menu>
  );
}

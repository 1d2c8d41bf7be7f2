import { Button, Drawer, Stack } from "@mantine/core";
import type { ReactNode } from "react";

/** Properties of {@link FilterSheet}. */
interface FilterSheetProps {
  readonly opened: boolean;
  readonly onClose: () => void;
  readonly children: ReactNode;
}

/** Filters in a sheet at the bottom of a phone. */
export function FilterSheet({ opened, onClose, children }: FilterSheetProps) {
  return (
    <Drawer
      opened={opened}
      onClose={onClose}
      title="Filters"
      position="bottom"
      styles={{ content: { height: "auto" } }}
      closeButtonProps={{ "aria-label": "Close" }}
      // As in `Dialog`: no second banner of the page.
      attributes={{ header: { role: "none" } }}
    >
      <Stack>
        {children}
        <Button onClick={onClose}>Done</Button>
      </Stack>
    </Drawer>
  );
}

import { Button, Drawer, Stack } from "@mantine/core";
import { useDisclosure, useMediaQuery } from "@mantine/hooks";
import { SlidersHorizontal } from "lucide-react";
import type { ReactNode } from "react";

/** Properties of {@link MoreFilters}. */
interface MoreFiltersProps {
  /** Number of its filters that narrow the list. */
  readonly active: number;
  readonly children: ReactNode;
}

/** Filters that have no room on a phone: there a button opens them in a sheet. */
export function MoreFilters({ active, children }: MoreFiltersProps) {
  const isPhone = useMediaQuery("(max-width: 48em)", false, { getInitialValueInEffect: false });
  const [opened, sheet] = useDisclosure(false);
  if (!isPhone) return children;
  return (
    <>
      <Button variant="default" leftSection={<SlidersHorizontal size={16} />} onClick={sheet.open}>
        {active === 0 ? "Filters" : `Filters (${active})`}
      </Button>
      <Drawer
        opened={opened}
        onClose={sheet.close}
        title="Filters"
        position="bottom"
        size="auto"
        closeButtonProps={{ "aria-label": "Close" }}
        // As in `Dialog`: no second banner of the page.
        attributes={{ header: { role: "none" } }}
      >
        <Stack>
          {children}
          <Button onClick={sheet.close}>Done</Button>
        </Stack>
      </Drawer>
    </>
  );
}

import { Button } from "@mantine/core";
import { useDisclosure, useMediaQuery } from "@mantine/hooks";
import { SlidersHorizontal } from "lucide-react";
import { type ReactNode, Suspense } from "react";
import { lazyView } from "./lazy-view.ts";
import { phoneQuery } from "./phone.ts";

const FilterSheet = lazyView(async () => (await import("./filter-sheet.tsx")).FilterSheet);

/** Properties of {@link MoreFilters}. */
interface MoreFiltersProps {
  /** Number of its filters that narrow the list. */
  readonly active: number;
  readonly children: ReactNode;
}

/** Filters that have no room on a phone: there a button opens them in a sheet. */
export function MoreFilters({ active, children }: MoreFiltersProps) {
  const isPhone = useMediaQuery(phoneQuery, false, { getInitialValueInEffect: false });
  const [opened, sheet] = useDisclosure(false);
  if (!isPhone) return children;
  return (
    <>
      <Button size="xs" variant="default" leftSection={<SlidersHorizontal size={16} />} onClick={sheet.open}>
        {active === 0 ? "Filters" : `Filters (${active})`}
      </Button>
      <Suspense>
        <FilterSheet opened={opened} onClose={sheet.close}>
          {children}
        </FilterSheet>
      </Suspense>
    </>
  );
}

import { Table, VisuallyHidden } from "@mantine/core";
import type { ReactNode } from "react";
import type { Activity } from "./activity.ts";
import { durationText, rateText } from "./figures.ts";

/** The cells with a load: requests and errors per second, mean time. */
export function ActivityCells({ activity }: { readonly activity: Activity | null }) {
  const failing = activity !== null && activity.errorsPerSecond > 0;
  const mean = activity?.meanMs ?? null;
  return (
    <>
      <Figure>{activity && rateText(activity.requestsPerSecond)}</Figure>
      <Figure failing={failing}>{activity && rateText(activity.errorsPerSecond)}</Figure>
      <Figure>{mean !== null && durationText(mean)}</Figure>
    </>
  );
}

/** A cell with a number, or a dash for none. */
export function Figure({
  failing = false,
  children,
}: {
  readonly failing?: boolean;
  readonly children: ReactNode;
}) {
  return (
    <Table.Td
      ta="end"
      style={{ whiteSpace: "nowrap" }}
      {...(failing && { c: "var(--mantine-color-error)", fw: 600 })}
    >
      {children || (
        <>
          <span aria-hidden="true">–</span>
          <VisuallyHidden>no data</VisuallyHidden>
        </>
      )}
    </Table.Td>
  );
}

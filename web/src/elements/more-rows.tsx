import { Button, Group, Text } from "@mantine/core";

/** Rows that a table begins with, and by which it grows: drawing thousands at once would hold up the page. */
export const rowStep = 100;

/** How much of a table is shown. */
interface MoreRowsProps {
  /** What the rows are, in the plural. */
  readonly what: string;
  readonly shown: number;
  readonly total: number;
  readonly onMore: () => void;
}

/** Stands below a table that shows the first of many rows. */
export function MoreRows({ what, shown, total, onMore }: MoreRowsProps) {
  if (shown >= total) return null;
  return (
    <Group gap="sm">
      <Text size="sm" c="dimmed" role="status">
        The first {shown.toLocaleString("en")} of {total.toLocaleString("en")} {what}
      </Text>
      <Button size="xs" variant="default" onClick={onMore}>
        Show more
      </Button>
    </Group>
  );
}

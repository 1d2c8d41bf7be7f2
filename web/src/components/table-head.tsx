import { Table, VisuallyHidden } from "@mantine/core";

interface TableHeadProps {
  readonly headings: readonly string[];
}

/** The head of a table whose rows end with buttons. */
export function TableHead({ headings }: TableHeadProps) {
  return (
    <Table.Thead>
      <Table.Tr>
        {headings.map((heading) => (
          <Table.Th key={heading}>{heading}</Table.Th>
        ))}
        <Table.Th>
          <VisuallyHidden>Actions</VisuallyHidden>
        </Table.Th>
      </Table.Tr>
    </Table.Thead>
  );
}

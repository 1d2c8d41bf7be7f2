import { Paper, Text } from "@mantine/core";

interface FigureCardProps {
  readonly term: string;
  readonly value: string;
  readonly about?: string;
}

/** A figure of the mesh, in a description list. */
export function FigureCard({ term, value, about }: FigureCardProps) {
  return (
    <Paper withBorder px="sm" py="xs">
      <Text component="dt" size="sm">
        {term}
      </Text>
      <Text component="dd" m={0} size="xl" fw={600}>
        {value}
      </Text>
      {about !== undefined && (
        <Text component="dd" m={0} size="xs" c="dimmed">
          {about}
        </Text>
      )}
    </Paper>
  );
}

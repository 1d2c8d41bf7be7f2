import { Button, Stack, Text } from "@mantine/core";
import type { ReactNode } from "react";

/** Properties of {@link EmptyList}. */
interface EmptyListProps {
  /** Why there is nothing, and where it would come from. */
  readonly children: ReactNode;
  /** Label of the button with the next step. */
  readonly next?: string;
  readonly onNext?: () => void;
}

/** Text in place of a list without rows, and what to do next. */
export function EmptyList({ children, next, onNext }: EmptyListProps) {
  return (
    <Stack align="center" py="xl" gap="sm">
      <Text component="div" c="dimmed" ta="center" maw="44rem">
        {children}
      </Text>
      {next !== undefined && (
        <Button variant="default" onClick={onNext}>
          {next}
        </Button>
      )}
    </Stack>
  );
}

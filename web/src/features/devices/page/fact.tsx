import { Stack, Text } from "@mantine/core";
import type { ReactNode } from "react";

/** A property of a device with its value, in a description list. */
export function Fact({ term, children }: { readonly term: string; readonly children: ReactNode }) {
  return (
    <Stack gap={0}>
      <Text component="dt" size="xs" c="dimmed">
        {term}
      </Text>
      <Text component="dd" size="sm" m={0}>
        {children}
      </Text>
    </Stack>
  );
}

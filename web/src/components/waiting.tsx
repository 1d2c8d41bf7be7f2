import { Center, Loader, VisuallyHidden } from "@mantine/core";

/** Placeholder while data is loaded. */
export function Waiting() {
  return (
    <Center p="xl" role="status">
      <Loader size="sm" aria-hidden="true" />
      <VisuallyHidden>Loading</VisuallyHidden>
    </Center>
  );
}

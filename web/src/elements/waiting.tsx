import { Center, Loader, VisuallyHidden } from "@mantine/core";

/** Stands where something is still on its way. */
export function Waiting() {
  return (
    <Center p="xl" role="status">
      <Loader size="sm" aria-hidden="true" />
      <VisuallyHidden>Loading</VisuallyHidden>
    </Center>
  );
}

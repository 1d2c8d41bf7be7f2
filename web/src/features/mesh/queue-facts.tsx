import type { MeshState } from "@devmesh/contracts/model/mesh-state";
import { Paper, SimpleGrid, Text } from "@mantine/core";
import { countText } from "./figures.ts";

const queues: readonly {
  readonly name: keyof MeshState["queues"];
  readonly term: string;
  readonly about: string;
}[] = [
  { name: "data", term: "Records to store", about: "messages of devices that data has not stored yet" },
  {
    name: "rpc_bridge",
    term: "Device messages to handle",
    about: "shadow requests and events that rpc-bridge has not handled yet",
  },
  { name: "mail", term: "Mail to send", about: "first tries and those that wait for another" },
  { name: "dead_mail", term: "Mail given up", about: "listed below, to be tried again" },
];

/** The length of each queue. */
export function QueueFacts({ queues: waiting }: { readonly queues: MeshState["queues"] }) {
  return (
    <SimpleGrid cols={{ base: 2, lg: 4 }} spacing="sm" component="dl" m={0}>
      {queues.map(({ name, term, about }) => {
        const count = waiting[name];
        return (
          <Paper key={name} withBorder px="sm" py="xs">
            <Text component="dt" size="sm">
              {term}
            </Text>
            <Text component="dd" m={0} size="xl" fw={600}>
              {count === null ? "not known" : countText(count)}
            </Text>
            <Text component="dd" m={0} size="xs" c="dimmed">
              {about}
            </Text>
          </Paper>
        );
      })}
    </SimpleGrid>
  );
}

import { Alert, Text, Title } from "@mantine/core";
import { Page } from "../../components/page.tsx";
import { Waiting } from "../../components/waiting.tsx";
import type { StreamState } from "../../live/lasting-stream.ts";
import { DeadMail } from "./dead-mail.tsx";
import { QueueFacts } from "./queue-facts.tsx";
import { ServiceTable } from "./service-table.tsx";
import { useMesh } from "./use-mesh.ts";

/** The running mesh: its services and replicas, their load, and the queues. */
export function MeshTab() {
  const { observation, stream, unread } = useMesh();
  const wrong = describeTrouble(stream, unread);
  return (
    <Page
      title="Mesh"
      actions={
        observation !== null && (
          <Text size="sm" c="dimmed">
            as of {timeOfDay(observation.at)}
          </Text>
        )
      }
    >
      <div role="status">
        {wrong !== null && (
          <Alert color="yellow" title={wrong}>
            {observation === null
              ? "It is retried until it succeeds."
              : `The shown data is of ${timeOfDay(observation.at)}. It is retried until it succeeds.`}
          </Alert>
        )}
      </div>
      {observation === null && wrong === null && <Waiting />}
      {observation !== null && (
        <>
          <Title order={2}>Services</Title>
          <ServiceTable services={observation.services} />
          <Title order={2}>Queues</Title>
          <QueueFacts queues={observation.queues} />
        </>
      )}
      <DeadMail queues={observation?.queues ?? null} />
    </Page>
  );
}

/** Why the shown data may be outdated; null if it is not. */
function describeTrouble(stream: StreamState, unread: boolean): string | null {
  if (stream === "reconnecting") return "The connection to the mesh is lost";
  if (stream === "unavailable") return "The server does not report the state of the mesh";
  return stream === "live" && unread ? "The gateway cannot reach the mesh" : null;
}

function timeOfDay(at: string): string {
  return new Date(at).toLocaleTimeString();
}

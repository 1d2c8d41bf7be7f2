import type { MeshState } from "@devmesh/contracts/model/mesh-state";
import { Alert, Text } from "@mantine/core";
import { Card } from "../../components/card.tsx";
import { bytesText, countText, rateText } from "../../components/number-text.ts";
import { Page } from "../../components/page.tsx";
import { Stat, StatStrip } from "../../components/stat-strip.tsx";
import { clockText } from "../../components/time-in-words.ts";
import { Waiting } from "../../components/waiting.tsx";
import { DeadMail } from "./dead-mail.tsx";
import { useMesh } from "./mesh-stream.ts";
import type { MeshFigures } from "./observation.ts";
import { ServiceTable } from "./service-table.tsx";
import { useMeshFigures } from "./use-mesh-figures.ts";

/** The running mesh: its services and replicas, their load, and the queues. */
export function MeshTab() {
  const { observation, trouble: wrong } = useMesh();
  const { figures } = useMeshFigures(observation);
  const hanging = observation?.services.filter(({ hangs }) => hangs).map(({ name }) => name) ?? [];
  return (
    <Page
      title="Services"
      actions={
        observation !== null && (
          <Text size="sm" c="dimmed">
            as of {clockText(observation.at)}
          </Text>
        )
      }
    >
      <div role="status">
        {wrong !== null && (
          <Alert color="yellow" title={wrong}>
            {observation === null
              ? "It is retried until it succeeds."
              : `The shown data is of ${clockText(observation.at)}. It is retried until it succeeds.`}
          </Alert>
        )}
        {hanging.length > 0 && wrong === null && (
          <Alert color="red" title={`${hanging.join(", ")} ${hanging.length === 1 ? "hangs" : "hang"}`}>
            A process is connected and does not answer. What it serves fails within 3 s, until it answers or
            is restarted.
          </Alert>
        )}
      </div>
      {observation === null && wrong === null && <Waiting />}
      {observation !== null && (
        <>
          {figures !== null && <Traffic figures={figures} />}
          <Card title="Services" flush>
            <ServiceTable services={observation.services} />
          </Card>
          <QueueFacts queues={observation.queues} />
        </>
      )}
      <DeadMail queues={observation?.queues ?? null} />
    </Page>
  );
}

/** What passes through the mesh now. */
function Traffic({ figures }: { readonly figures: MeshFigures }) {
  const rate = (perSecond: number | null) => (perSecond === null ? null : rateText(perSecond));
  const facts = [
    ["Records stored/s", rate(figures.recordsPerSecond)],
    ["Device calls/s", rate(figures.deviceCallsPerSecond)],
    ["Logins/s", rate(figures.loginsPerSecond)],
    ["Refused logins/s", rate(figures.refusedPerSecond)],
    ["Devices online", figures.devicesOnline === null ? null : countText(figures.devicesOnline)],
    ["Stored records", figures.storedBytes === null ? null : bytesText(figures.storedBytes)],
  ] as const;
  return (
    <StatStrip label="Traffic">
      {facts.map(([term, value]) => (
        <Stat key={term} term={term} value={value} />
      ))}
    </StatStrip>
  );
}

const queues: readonly {
  readonly name: keyof MeshState["queues"];
  readonly term: string;
  readonly about: string;
}[] = [
  { name: "data", term: "Records to store", about: "messages of devices that data has not stored yet" },
  {
    name: "rpc_bridge",
    term: "Messages to handle",
    about: "shadow requests and events of devices that rpc-bridge has not handled yet",
  },
  {
    name: "jobs",
    term: "Work for devices",
    about: "calls that wait until their device listens, or for its answer",
  },
  { name: "mail", term: "Mail to send", about: "first tries and those that wait for another" },
  { name: "dead_mail", term: "Undelivered mail", about: "listed below, where you can retry it" },
  { name: "webhooks", term: "Events for a webhook", about: "of the webhook for which most wait" },
];

/** The length of each queue. */
function QueueFacts({ queues: waiting }: { readonly queues: MeshState["queues"] }) {
  return (
    <StatStrip label="Queues">
      {queues.map(({ name, term, about }) => {
        const count = waiting[name];
        const value = count === null || count === undefined ? "not known" : countText(count);
        return (
          <Stat key={name} term={term} value={value}>
            <Text size="xs" c="dimmed" px={14} pb={12}>
              {about}
            </Text>
          </Stat>
        );
      })}
    </StatStrip>
  );
}

import type { Diagnosis } from "@devmesh/contracts/model/diagnostics";
import { Box, Group, Paper, Stack, Text, Title } from "@mantine/core";
import { Fragment } from "react";
import { Fact } from "../../../components/fact.tsx";
import { Failure } from "../../../components/failure.tsx";
import { RelativeTime } from "../../../components/relative-time.tsx";
import { StateBadge } from "../../../components/state.tsx";
import { diagnosisDetail, diagnosisName, diagnosisParts, isProblem } from "../shared/diagnosis-words.ts";
import { useDiagnostics } from "../shared/use-diagnostics.ts";
import type { SectionProps } from "./section.ts";

/** The last refused login of a device, and its last connection or the end of it; nothing where there was none. */
export function ConnectionFacts({ device: { id, online } }: SectionProps) {
  const { data = [] } = useDiagnostics(id);
  const refused = data.find(({ name }) => name === "login_refused");
  // A device that was taken over, or is back within a moment, has a later end of another connection.
  const connection = data.find(({ name }) => name === (online ? "connected" : "disconnected"));
  return (
    <>
      {refused !== undefined && (
        <Fact term="Last refused">
          <RelativeTime at={refused.last_at} />
          <DetailOf diagnosis={refused} />
        </Fact>
      )}
      {connection !== undefined && (
        <Fact term={connection.name === "connected" ? "Connected" : "Disconnected"}>
          <RelativeTime at={connection.last_at} />
          <DetailOf diagnosis={connection} />
        </Fact>
      )}
    </>
  );
}

/** Its parts, each on one line where it has room: an id would break at its hyphens. */
function DetailOf({ diagnosis }: { readonly diagnosis: Diagnosis }) {
  return diagnosisParts(diagnosis).map((part) => (
    <Fragment key={part}>
      , <span style={{ display: "inline-block" }}>{part}</span>
    </Fragment>
  ));
}

/** What happened between a device and the mesh, also before the page was opened. */
export function DiagnosisList({ id }: { readonly id: string }) {
  const { data = [], error, refetch } = useDiagnostics(id);
  if (error !== null) {
    return <Failure error={error} title="The diagnostics could not be read" onRetry={() => void refetch()} />;
  }
  if (data.length === 0) return null;
  return (
    <Stack gap="xs">
      <Title order={2} size="h5" id="connections-and-problems">
        Connections and problems
      </Title>
      <Paper
        withBorder
        component="ol"
        aria-labelledby="connections-and-problems"
        m={0}
        p={0}
        mah="15rem"
        tabIndex={0}
        style={{ listStyle: "none", overflow: "auto" }}
      >
        {data.map((entry) => (
          <Box
            component="li"
            key={`${entry.name} ${entry.reason} ${entry.address} ${entry.client_id} ${entry.topic} ${entry.first_at}`}
            px="sm"
            py={4}
            style={{ borderBottom: "1px solid var(--line-soft)" }}
            fz="sm"
          >
            <Group gap="sm">
              <RelativeTime at={entry.last_at} />
              <StateBadge look={isProblem(entry) ? "bad" : "idle"}>{diagnosisName(entry)}</StateBadge>
              <Text span size="sm" style={{ overflowWrap: "anywhere" }}>
                {diagnosisDetail(entry)}
              </Text>
            </Group>
          </Box>
        ))}
      </Paper>
    </Stack>
  );
}

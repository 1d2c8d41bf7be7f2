import { Anchor, Group, Text } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { ChevronLeft } from "lucide-react";
import { type ComponentType, useState } from "react";
import { Link, useParams } from "wouter";
import { useApi } from "../../../api/api-context.tsx";
import { ApiProblem } from "../../../api/api-problem.ts";
import { queryKeys } from "../../../api/query-keys.ts";
import { CopyButton } from "../../../components/copy-button.tsx";
import { Failure } from "../../../components/failure.tsx";
import { Page } from "../../../components/page.tsx";
import { Tag } from "../../../components/tag.tsx";
import { ViewLink } from "../../../components/view-link.tsx";
import { Waiting } from "../../../components/waiting.tsx";
import { useOutage } from "../../../live/live-updates.tsx";
import { AccessSection } from "./access-section.tsx";
import { CredentialsSection } from "./credentials-section.tsx";
import { DataSection } from "./data-section.tsx";
import { LogSection } from "./log-section.tsx";
import { OverviewSection } from "./overview-section.tsx";
import { RpcSection } from "./rpc-section.tsx";
import type { SectionProps } from "./section.ts";
import { ShadowSection } from "./shadow-section.tsx";
import { hasDraft } from "./use-device-draft.tsx";

/** One part of a device's page, with its address. */
interface PageSection {
  /** Below `/devices/:id/`. */
  readonly path: string;
  readonly label: string;
  /** It has a form: once opened it stays mounted while other sections are shown. */
  readonly keeps?: true;
  /** What its draft is of. */
  readonly drafts?: string;
  readonly View: ComponentType<SectionProps>;
}

/** The sections of a device's page, in the order in which they are offered; the first has no path. */
const sections: readonly [PageSection, ...PageSection[]] = [
  { path: "", label: "Overview", View: OverviewSection },
  { path: "shadow", label: "Shadow", keeps: true, drafts: "the desired state", View: ShadowSection },
  { path: "rpc", label: "RPC", keeps: true, View: RpcSection },
  { path: "data", label: "Data", View: DataSection },
  { path: "log", label: "Log", View: LogSection },
  { path: "access", label: "Access", keeps: true, drafts: "the ACL", View: AccessSection },
  { path: "credentials", label: "Credentials", View: CredentialsSection },
];

/** One device, in sections that can be linked to. */
export function DevicePage() {
  const { id = "", "*": path = "" } = useParams<{ id: string; "*"?: string }>();
  // Edits of one device must not be saved to another.
  return <DeviceSections key={id} id={id} path={path} />;
}

function DeviceSections({ id, path }: { readonly id: string; readonly path: string }) {
  const api = useApi();
  const { data, error, isPending, refetch } = useQuery({
    queryKey: queryKeys.device(id),
    queryFn: ({ signal }) => api.call("readDevice", { params: { id }, signal }),
  });
  const section = sections.find((each) => each.path === path) ?? sections[0];
  const [visited, setVisited] = useState<ReadonlySet<string>>(new Set());
  if (!visited.has(section.path)) setVisited(new Set(visited).add(section.path));
  const gone = error instanceof ApiProblem && error.status === 404;
  const name = data?.name ?? null;
  return (
    <Page
      title={name ?? id}
      documentTitle={name === null ? id : `${name} (${id})`}
      copyable={name === null ? "the ID" : "the name"}
      above={
        <Anchor component={Link} href="/devices" size="sm">
          <ChevronLeft size={14} /> Devices
        </Anchor>
      }
      below={
        name !== null && (
          <Group gap={4} wrap="nowrap">
            <Text size="sm" c="dimmed" ff="monospace">
              {id}
            </Text>
            <CopyButton text={id} what="the ID" />
          </Group>
        )
      }
      part={section.path === "" ? undefined : section.label}
      actions={data !== undefined && !gone && <Presence online={data.online} />}
    >
      {gone ? (
        <Text role="alert">
          The device {id} does not exist or was deleted. Go back to the{" "}
          <Anchor component={Link} href="/devices" underline="always">
            devices
          </Anchor>
          .
        </Text>
      ) : (
        error !== null && (
          <Failure error={error} title="The device could not be read" onRetry={() => void refetch()} />
        )
      )}
      {isPending && <Waiting />}
      {data !== undefined && !gone && (
        <>
          <nav aria-label="Sections of the device">
            <Group gap={4}>
              {sections.map(({ path: below, label, drafts }) => (
                <ViewLink
                  key={below}
                  href={below === "" ? `/devices/${id}` : `/devices/${id}/${below}`}
                  label={label}
                  active={below === section.path}
                  // Anything but undefined takes room, `false` too.
                  rightSection={
                    below !== section.path && drafts !== undefined && hasDraft(id, drafts) ? (
                      <Tag>unsaved</Tag>
                    ) : undefined
                  }
                  w="auto"
                />
              ))}
            </Group>
          </nav>
          {sections
            .filter(({ path: each, keeps }) => each === section.path || (keeps && visited.has(each)))
            .map(({ path: each, View }) => (
              <div key={each} hidden={each !== section.path}>
                <View device={data} />
              </div>
            ))}
        </>
      )}
    </Page>
  );
}

/** Whether the device is online, or was before the server went away. */
function Presence({ online }: { readonly online: boolean }) {
  const isKnown = useOutage() === null;
  const word = online ? "online" : "offline";
  return <Tag look={online && isKnown ? "good" : "plain"}>{isKnown ? word : `last known: ${word}`}</Tag>;
}

import type { Device } from "@devmesh/contracts/model/device";
import { Text, VisuallyHidden } from "@mantine/core";
import { useDisclosure } from "@mantine/hooks";
import { Box, Network, Unplug } from "lucide-react";
import { type ComponentType, type ReactNode, useState } from "react";
import { Link, useLocation, useParams } from "wouter";
import { useApi } from "../../../api/api-context.tsx";
import { ApiProblem } from "../../../api/api-problem.ts";
import { queryKeys } from "../../../api/query-keys.ts";
import { serverNow } from "../../../api/server-clock.ts";
import { useReading } from "../../../api/use-reading.ts";
import { CopyButton } from "../../../components/copy-button.tsx";
import { EmptyState } from "../../../components/empty-state.tsx";
import { Failure } from "../../../components/failure.tsx";
import { Page } from "../../../components/page.tsx";
import { StateBadge, StateDot } from "../../../components/state.tsx";
import { TabLinks } from "../../../components/tab-links.tsx";
import { longSpan } from "../../../components/time-in-words.ts";
import { Waiting } from "../../../components/waiting.tsx";
import { useOutage } from "../../../live/live-updates.tsx";
import { firmwareHint, rowOf } from "../shared/device-row.ts";
import { useDiagnostics } from "../shared/use-diagnostics.ts";
import { AccessSection } from "./access-section.tsx";
import { CredentialsSection } from "./credentials-section.tsx";
import { DataSection } from "./data-section.tsx";
import { DeviceLabels } from "./device-labels.tsx";
import { DeviceMenu } from "./device-menu.tsx";
import { DeviceNameEditor } from "./device-name.tsx";
import { LogSection } from "./log-section.tsx";
import { OverviewSection } from "./overview-section.tsx";
import { RpcSection } from "./rpc-section.tsx";
import type { SectionProps } from "./section.ts";
import { ShadowSection } from "./shadow-section.tsx";
import { hasDraft } from "./use-device-draft.tsx";
import { WorkSection } from "./work-section.tsx";

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
  { path: "rpc", label: "Calls", keeps: true, View: RpcSection },
  { path: "data", label: "Data", View: DataSection },
  { path: "work", label: "Work", View: WorkSection },
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
  const { data, error, isPending, refetch } = useReading({
    queryKey: queryKeys.device(id),
    queryFn: ({ signal }) => api.call("readDevice", { params: { id }, signal }),
  });
  const section = sections.find((each) => each.path === path) ?? sections[0];
  const [visited, setVisited] = useState<ReadonlySet<string>>(new Set());
  if (!visited.has(section.path)) setVisited(new Set(visited).add(section.path));
  const [renaming, rename] = useDisclosure(false);
  const [, navigate] = useLocation();
  const gone = error instanceof ApiProblem && error.status === 404;
  const name = data?.name ?? null;
  return (
    <Page
      title={name ?? id}
      documentTitle={name === null ? id : `${name} (${id})`}
      above={<Link href="/devices">Devices</Link>}
      below={
        !gone && (
          <>
            <Text span size="xs" ff="monospace">
              {id}
            </Text>
            <CopyButton text={id} what="the ID" />
            {data !== undefined && <Facts device={data} />}
          </>
        )
      }
      tabs={
        !gone && (
          <TabLinks
            label="Sections of the device"
            current={addressOf(id, section)}
            links={sections.map((each) => ({
              href: addressOf(id, each),
              label: each.label,
              extra: data && extraOf(data, each, section),
            }))}
          />
        )
      }
      part={section.path === "" ? undefined : section.label}
      state={data !== undefined && !gone && <Presence device={data} />}
      editor={
        data !== undefined && renaming ? <DeviceNameEditor device={data} onClose={rename.close} /> : undefined
      }
      actions={data !== undefined && !gone && <DeviceMenu device={data} onRename={rename.open} />}
    >
      {gone ? (
        <div role="alert">
          <EmptyState
            Icon={Unplug}
            title="There is no such device"
            next="All devices"
            onNext={() => navigate("/devices")}
          >
            {id} does not exist, or was deleted.
          </EmptyState>
        </div>
      ) : (
        error !== null && (
          <Failure error={error} title="The device could not be read" onRetry={() => void refetch()} />
        )
      )}
      {isPending && <Waiting />}
      {data !== undefined &&
        !gone &&
        sections
          .filter(({ path: each, keeps }) => each === section.path || (keeps && visited.has(each)))
          .map(({ path: each, View }) => (
            <div key={each} hidden={each !== section.path}>
              <View device={data} />
            </div>
          ))}
    </Page>
  );
}

/** Address of a section of a device. */
function addressOf(id: string, { path }: PageSection): string {
  return path === "" ? `/devices/${id}` : `/devices/${id}/${path}`;
}

/** A mark beside the name of a section: edits that are not saved, or a shadow that differs. */
function extraOf({ id, shadow }: Device, { path, drafts }: PageSection, shown: PageSection): ReactNode {
  if (path !== shown.path && drafts !== undefined && hasDraft(id, drafts))
    return (
      <>
        <StateDot look="info" /> <VisuallyHidden>unsaved</VisuallyHidden>
      </>
    );
  if (path !== "shadow" || shadow.state.delta === undefined) return undefined;
  return (
    <>
      <StateDot look="warn" /> <VisuallyHidden>differs</VisuallyHidden>
    </>
  );
}

/** Firmware, address and labels. */
function Facts({ device }: SectionProps) {
  const { firmware } = rowOf(device);
  const { data: diagnostics } = useDiagnostics(device.id);
  const address = device.online ? diagnostics?.find(({ name }) => name === "connected")?.address : null;
  return (
    <>
      {firmware !== null && (
        <Text span size="xs" ff="monospace" c="var(--text-2)" title={firmwareHint}>
          <Box size={14} aria-hidden="true" /> {firmware}
        </Text>
      )}
      {address != null && address !== "" && (
        <Text span size="xs" ff="monospace" c="var(--text-2)" title="Address of the connection">
          <Network size={14} aria-hidden="true" /> {address}
        </Text>
      )}
      <DeviceLabels device={device} />
    </>
  );
}

/** Whether the device is online, or was before the server went away. */
function Presence({ device: { id, online } }: SectionProps) {
  const isKnown = useOutage() === null;
  const { data: diagnostics } = useDiagnostics(id);
  const since = diagnostics?.find(({ name }) => name === (online ? "connected" : "disconnected"))?.last_at;
  const span = since === undefined ? 0 : serverNow() - Date.parse(since);
  const word = online ? "online" : "offline";
  if (!isKnown) return <StateBadge look="idle">{`last known: ${word}`}</StateBadge>;
  return (
    <StateBadge look={online ? "good" : "idle"}>
      {word}
      {span >= 60_000 && ` for ${longSpan(span - (span % 60_000))}`}
    </StateBadge>
  );
}

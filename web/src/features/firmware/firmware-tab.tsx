import type { DeviceFacets } from "@devmesh/contracts/model/device-facets";
import type { Firmware } from "@devmesh/contracts/model/firmware";
import type { Job } from "@devmesh/contracts/model/job";
import { Anchor, Button, Progress, Text } from "@mantine/core";
import { Suspense, useState } from "react";
import { Link } from "wouter";
import { useApi } from "../../api/api-context.tsx";
import { queryKeys } from "../../api/query-keys.ts";
import { useReading } from "../../api/use-reading.ts";
import { useBackgroundWork } from "../../components/background-work.ts";
import type { Column } from "../../components/data-table.tsx";
import { lazyView } from "../../components/lazy-view.ts";
import { bytesText, countText } from "../../components/number-text.ts";
import { RelativeTime } from "../../components/relative-time.tsx";
import { ShortListTab } from "../../components/short-list-tab.tsx";
import { StateBadge } from "../../components/state.tsx";
import { devicesWhere } from "../devices/shared/device-conditions.ts";
import { mostFirmware, useFirmware } from "../devices/shared/use-firmware.ts";
import { jobTitle } from "../jobs/job-words.ts";
import { jobsOf } from "../jobs/jobs-of-firmware.ts";
import { useJobs } from "../jobs/use-jobs.ts";
import { uploadKey } from "./use-upload.ts";
import { VersionsInFleet } from "./versions-in-fleet.tsx";

const AddFirmware = lazyView(async () => (await import("./add-firmware.tsx")).AddFirmware);
const UploadContent = lazyView(async () => (await import("./upload-content.tsx")).UploadContent);
const FirmwareDialog = lazyView(async () => (await import("./firmware-dialog.tsx")).FirmwareDialog);

/** How often the versions of the fleet are counted again, in milliseconds. */
const recountMs = 10_000;

/** Files that devices can run: uploaded, looked at, sent to devices and deleted. */
export function FirmwareTab() {
  const api = useApi();
  const query = useFirmware();
  const { data: jobs = [] } = useJobs();
  const facets = useReading({
    queryKey: [...queryKeys.deviceFacets, "versions"],
    queryFn: ({ signal }) => api.call("facetDevices", { query: { facets: ["version"] }, signal }),
    staleTime: 0,
    refetchInterval: recountMs,
  });
  const [works] = useBackgroundWork();
  const [shown, setShown] = useState<Firmware | null>(null);
  const [cut, setCut] = useState<Firmware | null>(null);
  const uploadOf = (firmware: Firmware) =>
    works.find(({ key, state }) => key === uploadKey(firmware) && state === "running");
  return (
    <>
      <ShortListTab
        title="Firmware"
        noun="file"
        query={query}
        filterPlaceholder="Name, version or SHA-256"
        textsOf={textsOf}
        none="A file of firmware is uploaded once, and sent to as many devices as you like, as fast as you like. An update has succeeded when the device reports its version after the reboot."
        columns={columnsOf({ jobs, facets: facets.data, uploadOf, onShow: setShown, onUpload: setCut })}
        minWidth={820}
        removal={{
          action: "Delete",
          label: ({ name, version }) => `Delete ${name} ${version}`,
          blockedBy: (firmware) =>
            uploadOf(firmware) !== undefined
              ? "It is being uploaded: cancel that"
              : jobsOf(jobs, firmware).some(({ ended_at }) => ended_at === null)
                ? "A job that has not ended sends it to devices"
                : undefined,
          consequence: () =>
            "Devices that run it go on running it. The file cannot be sent to devices any more.",
          run: ({ id }) => api.call("deleteFirmware", { params: { id } }),
        }}
        after={
          <>
            {query.data?.length === mostFirmware && (
              <Text size="sm" c="dimmed">
                The newest {countText(mostFirmware)} files. Older ones are in the API.
              </Text>
            )}
            <VersionsInFleet files={query.data ?? []} facets={facets} />
          </>
        }
        creation="Upload firmware"
        creationDialog={(onClose) => (
          <Suspense>
            <AddFirmware onClose={onClose} />
          </Suspense>
        )}
      />
      <Suspense>
        {shown !== null && <FirmwareDialog firmware={shown} onClose={() => setShown(null)} />}
        {cut !== null && <UploadContent firmware={cut} onClose={() => setCut(null)} />}
      </Suspense>
    </>
  );
}

function textsOf({ name, version, sha256 }: Firmware): readonly string[] {
  return [`${name} ${version}`, sha256];
}

/** What the columns of the list show besides the files. */
interface ColumnsOptions {
  readonly jobs: readonly Job[];
  /** Undefined until they are read. */
  readonly facets: DeviceFacets | undefined;
  readonly uploadOf: (firmware: Firmware) => { readonly share: number } | undefined;
  readonly onShow: (firmware: Firmware) => void;
  readonly onUpload: (firmware: Firmware) => void;
}

function columnsOf({
  jobs,
  facets,
  uploadOf,
  onShow,
  onUpload,
}: ColumnsOptions): readonly Column<Firmware>[] {
  return [
    {
      heading: "Firmware",
      namesRow: true,
      cell: (firmware) => (
        <Anchor
          component="button"
          type="button"
          size="sm"
          fw={500}
          c="var(--text)"
          ta="start"
          lineClamp={1}
          title={`${firmware.name} ${firmware.version}`}
          onClick={() => onShow(firmware)}
        >
          {firmware.name}{" "}
          <Text span inherit ff="monospace" fw={400}>
            {firmware.version}
          </Text>
        </Anchor>
      ),
    },
    {
      heading: "State",
      cell: (firmware) => {
        const upload = uploadOf(firmware);
        if (firmware.ready) return <StateBadge look="good">ready</StateBadge>;
        if (upload === undefined) return <StateBadge look="warn">without content</StateBadge>;
        return <Progress w={90} value={upload.share * 100} aria-label={`Upload of ${firmware.name}`} />;
      },
    },
    { heading: "Size", style: { ta: "end" }, cell: ({ size }) => bytesText(size) },
    { heading: "Created", cell: ({ created_at }) => <RelativeTime at={created_at} /> },
    {
      heading: "Devices that run it",
      style: { ta: "end" },
      cell: ({ reported_as }) => {
        const count = facets?.facets.version?.find(({ value }) => value === reported_as)?.count ?? 0;
        if (facets === undefined || count === 0) return facets === undefined ? "…" : countText(0);
        return (
          <Anchor component={Link} size="sm" href={devicesWhere({ version: { in: [reported_as] } })}>
            {countText(count)}
          </Anchor>
        );
      },
    },
    { heading: "Jobs", cell: (firmware) => <JobsCell jobs={jobsOf(jobs, firmware)} /> },
    {
      heading: "Next",
      hidesHeading: true,
      style: { ta: "end" },
      cell: (firmware) =>
        firmware.ready ? (
          <Button
            component={Link}
            size="compact-xs"
            variant="default"
            aria-label={`Update devices to ${firmware.name} ${firmware.version}`}
            href={`/jobs/new?firmware=${firmware.id}`}
          >
            Update devices
          </Button>
        ) : (
          uploadOf(firmware) === undefined && (
            <Button
              size="compact-xs"
              variant="default"
              aria-label={`Upload the file of ${firmware.name} ${firmware.version}`}
              onClick={() => onUpload(firmware)}
            >
              Upload the file
            </Button>
          )
        ),
    },
  ];
}

/** The newest job that uses a file, and how many more do. */
function JobsCell({ jobs }: { readonly jobs: readonly Job[] }) {
  const [newest] = jobs;
  if (newest === undefined) return "none";
  return (
    <Text size="sm" lineClamp={1} maw={220}>
      <Anchor component={Link} inherit href={`/jobs/${newest.id}`}>
        {jobTitle(newest)}
      </Anchor>
      {jobs.length > 1 && ` and ${countText(jobs.length - 1)} more`}
    </Text>
  );
}

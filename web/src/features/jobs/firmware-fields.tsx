import { printConditionText } from "@devmesh/contracts/model/condition-text";
import { Group, NativeSelect, SegmentedControl, Text, TextInput } from "@mantine/core";
import type { ReactNode } from "react";
import { Link } from "wouter";
import { Failure } from "../../components/failure.tsx";
import { Fold } from "../../components/fold.tsx";
import { bytesText } from "../../components/number-text.ts";
import { WholeNumberInput } from "../../components/whole-number-input.tsx";
import { useFirmware } from "../devices/shared/use-firmware.ts";
import type { TypedJob } from "./typed-job.ts";

/** What each way of an update is. */
const ways = {
  url: "The device is called with OTA.Update, and fetches the file over HTTP.",
  shadow: "The device finds the URL in desired.ota of its shadow when it wakes up.",
  push: "The device is sent the file over MQTT, a piece in each call.",
} as const;

/** Properties of {@link FirmwareFields}. */
interface FirmwareFieldsProps {
  readonly values: TypedJob;
  /** The properties of a field, with its fault. */
  readonly field: (name: keyof TypedJob) => { readonly error?: ReactNode };
}

/** Which file devices get, and how. */
export function FirmwareFields({ values: { firmware_id, via }, field }: FirmwareFieldsProps) {
  const { data, error, refetch } = useFirmware();
  const files = data?.filter(({ ready }) => ready) ?? [];
  const chosen = files.find(({ id }) => id === firmware_id);
  return (
    <>
      <Failure error={error} title="The firmware could not be read" onRetry={() => void refetch()} />
      {data !== undefined && files.length === 0 ? (
        <Text size="sm">
          There is no firmware yet: <Link href="/firmware">upload a file</Link>.
        </Text>
      ) : (
        <NativeSelect
          label="Firmware"
          data={[
            { value: "", label: "Choose a file", disabled: true },
            ...files.map(({ id, name, version, size }) => ({
              value: id,
              label: `${name} ${version}, ${bytesText(size)}`,
            })),
          ]}
          {...(chosen !== undefined && {
            description:
              chosen.requires === null
                ? `Has succeeded when the device reports ${chosen.reported_as}.`
                : `Has succeeded when the device reports ${chosen.reported_as}; only for ${printConditionText(chosen.requires)}.`,
          })}
          {...field("firmware_id")}
        />
      )}
      <div>
        <SegmentedControl
          aria-label="Way of the update"
          data={[
            { value: "url", label: "By URL" },
            { value: "shadow", label: "By the shadow" },
            { value: "push", label: "Pushed" },
          ]}
          {...field("via")}
        />
        <Text size="xs" c="dimmed" mt={4}>
          {ways[via]}
        </Text>
      </div>
      <Fold label="More of the update" needed={advanced.some((name) => field(name).error)}>
        {via === "shadow" ? (
          <TextInput
            label="Version in the shadow"
            placeholder="/state/reported/ota/fw_version"
            spellCheck={false}
            {...field("confirm_shadow")}
          />
        ) : (
          <Group gap="sm" align="start" grow>
            <TextInput
              label="Version from"
              placeholder="Sys.GetInfo"
              spellCheck={false}
              {...field("confirm_rpc")}
            />
            <TextInput
              label="At"
              placeholder="/fw_version"
              spellCheck={false}
              {...field("confirm_pointer")}
            />
          </Group>
        )}
        <Group gap="sm" align="start" grow>
          <TextInput
            label="Must last"
            description="Such as 90 s, 5 min, 2 h."
            placeholder="1 min"
            {...field("stable")}
          />
          <TextInput
            label="An attempt ends after"
            description="If no version is reported."
            placeholder="1 h"
            {...field("timeout")}
          />
        </Group>
        <Group gap="sm" align="start" grow>
          <TextInput
            label="Called when it lasts"
            placeholder={via === "shadow" ? "none" : "OTA.Commit"}
            spellCheck={false}
            {...field("commit")}
          />
          {via === "push" && (
            <WholeNumberInput label="Bytes in each call" placeholder="2048" {...field("chunk")} />
          )}
        </Group>
      </Fold>
    </>
  );
}

const advanced = [
  "confirm_shadow",
  "confirm_rpc",
  "confirm_pointer",
  "stable",
  "timeout",
  "commit",
  "chunk",
] as const;

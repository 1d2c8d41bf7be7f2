import type { DataRecord } from "@devmesh/contracts/model/data-record";
import { Anchor, Stack, Text } from "@mantine/core";
import { Link } from "wouter";
import { Snippet } from "../../components/code-block.tsx";
import { Dialog } from "../../components/dialog.tsx";
import { dateTimeText } from "../../components/time-in-words.ts";

/** One record with the whole of its payload. */
export function RecordDialog({
  record,
  onClose,
}: {
  readonly record: DataRecord;
  readonly onClose: () => void;
}) {
  const { id, timestamp, device_id, topic, message, encoding } = record;
  return (
    <Dialog title={`Record ${id}`} size="lg" onClose={onClose}>
      <Stack gap="sm">
        <Text size="sm">
          Stored {dateTimeText(timestamp)} ({timestamp}), from{" "}
          <Anchor component={Link} href={`/devices/${device_id}`} size="sm" underline="always">
            {device_id}
          </Anchor>
          .
        </Text>
        <Snippet label="Topic" text={topic} />
        <Snippet
          label={encoding === undefined ? "Payload" : "Payload, in base64 as it is no text"}
          text={readablePayload(message)}
        />
      </Stack>
    </Dialog>
  );
}

/** A payload for display: JSON objects and arrays indented, other text unchanged. */
export function readablePayload(message: string): string {
  if (!/^\s*[[{]/.test(message)) return message;
  try {
    // Numbers that the page could not hold exactly are not to be changed by being shown.
    const lines = JSON.stringify(JSON.parse(message), null, 2);
    return lines.replace(/\s/g, "") === message.replace(/\s/g, "") ? lines : message;
  } catch {
    return message;
  }
}

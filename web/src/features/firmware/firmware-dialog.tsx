import { printConditionText } from "@devmesh/contracts/model/condition-text";
import type { Firmware } from "@devmesh/contracts/model/firmware";
import { Group, Text } from "@mantine/core";
import { Link } from "wouter";
import { CopyButton } from "../../components/copy-button.tsx";
import { Dialog } from "../../components/dialog.tsx";
import { Fact, Facts } from "../../components/fact.tsx";
import { bytesText, countText } from "../../components/number-text.ts";
import { dateTimeText } from "../../components/time-in-words.ts";
import { devicesWhere } from "../devices/shared/device-conditions.ts";

/** Properties of {@link FirmwareDialog}. */
interface FirmwareDialogProps {
  readonly firmware: Firmware;
  readonly onClose: () => void;
}

/** All that is known of a file. */
export function FirmwareDialog({ firmware, onClose }: FirmwareDialogProps) {
  const { id, name, version, reported_as, size, sha256, requires, signature, note, created_at } = firmware;
  return (
    <Dialog title={`${name} ${version}`} size="lg" onClose={onClose}>
      <Facts>
        <Fact term="Reported as">
          <Link href={devicesWhere({ version: { in: [reported_as] } })}>{reported_as}</Link>
        </Fact>
        <Fact term="Size">
          {bytesText(size)} ({countText(size)} bytes)
        </Fact>
        <Fact term="SHA-256">
          <Copied text={sha256} what="the SHA-256" />
        </Fact>
        <Fact term="Only for">
          {requires === null ? (
            "all devices"
          ) : (
            <Link href={devicesWhere(requires)}>
              <Text span inherit ff="monospace">
                {printConditionText(requires)}
              </Text>
            </Link>
          )}
        </Fact>
        <Fact term="Signature">
          {signature === null ? "none" : <Copied text={signature} what="the signature" />}
        </Fact>
        {note !== null && <Fact term="Note">{note}</Fact>}
        <Fact term="Created">{dateTimeText(created_at)}</Fact>
        <Fact term="Id">
          <Copied text={id} what="the id" />
        </Fact>
      </Facts>
    </Dialog>
  );
}

function Copied({ text, what }: { readonly text: string; readonly what: string }) {
  return (
    <Group gap={4} wrap="nowrap" align="start">
      <Text size="xs" ff="monospace" style={{ overflowWrap: "anywhere" }}>
        {text}
      </Text>
      <CopyButton text={text} what={what} />
    </Group>
  );
}

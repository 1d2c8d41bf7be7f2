import { Button, Group, Paper, SimpleGrid, Stack, TagsInput, Text, TextInput } from "@mantine/core";
import { useDisclosure } from "@mantine/hooks";
import { useMutation, useQueryClient } from "@tanstack/react-query";
import { type FormEvent, type ReactNode, useState } from "react";
import { useLocation } from "wouter";
import { useApi } from "../api/api-context.tsx";
import { queryKeys } from "../api/query-keys.ts";
import { DeleteDevices } from "../devices/delete-devices.tsx";
import { labelsOf, rowOf } from "../devices/device-row.ts";
import { labelDevice } from "../devices/labelling.ts";
import { CopyButton } from "../elements/copy-button.tsx";
import { Failure } from "../elements/failure.tsx";
import { Icon } from "../elements/icon.tsx";
import { RelativeTime } from "../elements/relative-time.tsx";
import type { SectionProps } from "./section.ts";

/** What a device is and how it stands; its name and labels are changed here. */
export function OverviewSection({ device }: SectionProps) {
  const [, navigate] = useLocation();
  const [deleting, deletion] = useDisclosure(false);
  const { firmware } = rowOf(device);
  return (
    <Stack>
      <SimpleGrid cols={{ base: 1, xs: 2, lg: 3 }} component="dl" m={0}>
        <Fact term="ID">
          <Group gap={4} component="span">
            {device.id} <CopyButton text={device.id} what="the ID" />
          </Group>
        </Fact>
        <Fact term="Last seen">{device.online ? "online now" : <RelativeTime at={device.last_seen} />}</Fact>
        <Fact term="Version of its firmware">{firmware ?? "not reported"}</Fact>
        <Fact term="Shadow">
          version {device.shadow.version},{" "}
          {device.shadow.state.delta === undefined ? "nothing to take over" : "changes to take over"}
        </Fact>
        <Fact term="Shadow written">
          <RelativeTime at={new Date(device.shadow.timestamp).toISOString()} />
        </Fact>
        <Fact term="Created">
          <RelativeTime at={device.created_at} />
        </Fact>
      </SimpleGrid>
      <NameForm device={device} />
      <LabelsForm device={device} />
      <Group>
        <Button variant="default" leftSection={<Icon name="delete" size={16} />} onClick={deletion.open}>
          Delete the device
        </Button>
      </Group>
      {deleting && (
        <DeleteDevices ids={[device.id]} onClose={deletion.close} onDeleted={() => navigate("/devices")} />
      )}
    </Stack>
  );
}

function Fact({ term, children }: { readonly term: string; readonly children: ReactNode }) {
  return (
    <Paper withBorder px="sm" py="xs">
      <Text component="dt" size="xs" c="dimmed">
        {term}
      </Text>
      <Text component="dd" size="sm" m={0}>
        {children}
      </Text>
    </Paper>
  );
}

function NameForm({ device }: SectionProps) {
  const api = useApi();
  const queries = useQueryClient();
  // What is typed stays, whatever others write meanwhile.
  const [typed, setTyped] = useState<string | null>(null);
  const name = typed ?? device.name ?? "";
  const naming = useMutation({
    mutationFn: () =>
      api.call("patchDevice", { params: { id: device.id }, body: { name: name === "" ? null : name } }),
    onSuccess: (changed) => {
      queries.setQueryData(queryKeys.device(device.id), changed);
      setTyped(null);
    },
  });
  const submit = (event: FormEvent) => {
    event.preventDefault();
    naming.mutate();
  };
  return (
    <form onSubmit={submit}>
      <Group align="end" gap="xs">
        <TextInput
          label="Name"
          value={name}
          maxLength={256}
          onChange={(event) => setTyped(event.currentTarget.value)}
          w={{ base: "100%", xs: 320 }}
        />
        <Button
          type="submit"
          variant="default"
          loading={naming.isPending}
          disabled={name === (device.name ?? "")}
        >
          Save the name
        </Button>
      </Group>
      {naming.error !== null && <Failure error={naming.error} title="The name was not changed" />}
    </form>
  );
}

function LabelsForm({ device }: SectionProps) {
  const api = useApi();
  const queries = useQueryClient();
  const current = labelsOf(device.shadow.tags);
  // Begun with the labels of then: those that others set meanwhile are neither taken away nor asked for.
  const [edited, setEdited] = useState<{ readonly before: string[]; readonly labels: string[] } | null>(null);
  const { before, labels } = edited ?? { before: current, labels: current };
  const add = labels.filter((label) => !before.includes(label));
  const remove = before.filter((label) => !labels.includes(label));
  const labelling = useMutation({
    mutationFn: () => labelDevice(api, device.id, { add, remove }, AbortSignal.timeout(30_000)),
    onSuccess: async () => {
      await queries.invalidateQueries({ queryKey: queryKeys.device(device.id), exact: true });
      setEdited(null);
    },
  });
  const submit = (event: FormEvent) => {
    event.preventDefault();
    labelling.mutate();
  };
  return (
    <form onSubmit={submit}>
      <Group align="end" gap="xs">
        <TagsInput
          label="Labels"
          value={labels}
          onChange={(changed) => setEdited({ before, labels: changed })}
          w={{ base: "100%", xs: 320 }}
          acceptValueOnBlur
        />
        <Button
          type="submit"
          variant="default"
          loading={labelling.isPending}
          disabled={add.length + remove.length === 0}
        >
          Save the labels
        </Button>
      </Group>
      {labelling.error !== null && <Failure error={labelling.error} title="The labels were not changed" />}
    </form>
  );
}

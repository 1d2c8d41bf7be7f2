import { DeviceId } from "@devmesh/contracts/model/device-id";
import { Alert, Button, Stack, TagsInput, Text, TextInput } from "@mantine/core";
import { useMutation } from "@tanstack/react-query";
import { type FormEvent, useState } from "react";
import { Link } from "wouter";
import { useApi } from "../api/api-context.tsx";
import type { CallResult } from "../api/route-types.ts";
import { Dialog } from "../elements/dialog.tsx";
import { DialogActions, SubmitOrCancel } from "../elements/dialog-actions.tsx";
import { Failure } from "../elements/failure.tsx";
import { Snippet } from "../elements/snippet.tsx";
import { curlSnippet, mqttPublishSnippet, mqttSnippet } from "./connection-snippets.ts";
import { useBroker } from "./use-broker.ts";

/** Asks for a new device; once it is there, shows how it connects. */
export function CreateDevice({ onClose }: { readonly onClose: () => void }) {
  return (
    <Dialog onClose={onClose} title="Add a device" size="lg">
      <Creation onClose={onClose} />
    </Dialog>
  );
}

function Creation({ onClose }: { readonly onClose: () => void }) {
  const api = useApi();
  const [id, setId] = useState("");
  const [name, setName] = useState("");
  const [labels, setLabels] = useState<string[]>([]);
  const wrongId = id === "" ? null : (DeviceId.safeParse(id).error?.issues[0]?.message ?? null);
  const creation = useMutation({
    mutationFn: () =>
      api.call("createDevice", {
        body: {
          ...(id !== "" && { id }),
          ...(name !== "" && { name }),
          ...(labels.length > 0 && { shadow: { tags: { labels } } }),
        },
      }),
  });

  if (creation.data !== undefined) return <Created device={creation.data} onClose={onClose} />;

  const submit = (event: FormEvent) => {
    event.preventDefault();
    if (wrongId === null) creation.mutate();
  };
  return (
    <form onSubmit={submit}>
      <Stack>
        <TextInput
          label="ID"
          description="Stands in its topics and cannot be changed later. Left empty, one is made."
          value={id}
          onChange={(event) => setId(event.currentTarget.value.trim())}
          error={wrongId}
          data-autofocus
          autoComplete="off"
        />
        <TextInput
          label="Name"
          value={name}
          maxLength={256}
          onChange={(event) => setName(event.currentTarget.value)}
        />
        <TagsInput label="Labels" description="Press Enter after each." value={labels} onChange={setLabels} />
        {creation.error !== null && <Failure error={creation.error} title="The device was not created" />}
        <SubmitOrCancel action="Create" running={creation.isPending} onCancel={onClose} />
      </Stack>
    </form>
  );
}

function Created({
  device,
  onClose,
}: {
  readonly device: CallResult<"createDevice">;
  readonly onClose: () => void;
}) {
  const connection = { id: device.id, token: device.token, ...useBroker() };
  return (
    <Stack>
      <Alert color="teal" variant="light" role="status">
        {device.id} is created.
      </Alert>
      <Snippet label="Device ID, its MQTT user name" text={device.id} />
      <Snippet label="Token, its MQTT password" text={device.token} />
      <Text size="xs" c="dimmed">
        The token is not shown in lists again; it stands among the credentials of the device.
      </Text>
      <Snippet label="Connect by MQTT" text={mqttSnippet(connection)} />
      <Snippet label="Publish a value" text={mqttPublishSnippet(connection)} />
      <Snippet label="Read it by REST" text={curlSnippet(device.id, window.location.origin)} />
      <DialogActions>
        <Button variant="default" component={Link} href={`/devices/${device.id}`}>
          Open the device
        </Button>
        <Button onClick={onClose} data-autofocus>
          Done
        </Button>
      </DialogActions>
    </Stack>
  );
}

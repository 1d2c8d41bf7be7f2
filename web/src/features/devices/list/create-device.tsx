import { DeviceId } from "@devmesh/contracts/model/device-id";
import { Alert, Button, Stack, TagsInput, Text, TextInput } from "@mantine/core";
import { useForm } from "@mantine/form";
import { useMutation } from "@tanstack/react-query";
import { Link } from "wouter";
import { useApi } from "../../../api/api-context.tsx";
import type { CallResult } from "../../../api/route-types.ts";
import { Dialog } from "../../../components/dialog.tsx";
import { DialogActions, SubmitOrCancel } from "../../../components/dialog-actions.tsx";
import { Failure } from "../../../components/failure.tsx";
import { issueOf } from "../../../components/issue-of.ts";
import { Snippet } from "../../../components/snippet.tsx";
import { curlSnippet, mqttPublishSnippet, mqttSnippet } from "../shared/connection-snippets.ts";
import { useBroker } from "../shared/use-broker.ts";

/** Creates a device and shows how it connects. */
export function CreateDevice({ onClose }: { readonly onClose: () => void }) {
  return (
    <Dialog onClose={onClose} title="Add a device" size="lg">
      <Creation onClose={onClose} />
    </Dialog>
  );
}

function Creation({ onClose }: { readonly onClose: () => void }) {
  const api = useApi();
  const form = useForm({
    initialValues: { id: "", name: "", labels: [] as string[] },
    validate: { id: (id) => (id === "" ? null : issueOf(DeviceId, id)) },
    validateInputOnChange: true,
  });
  const creation = useMutation({
    mutationFn: ({ id, name, labels }: typeof form.values) =>
      api.call("createDevice", {
        body: {
          ...(id !== "" && { id }),
          ...(name !== "" && { name }),
          ...(labels.length > 0 && { shadow: { tags: { labels } } }),
        },
      }),
  });

  if (creation.data !== undefined) return <Created device={creation.data} onClose={onClose} />;

  return (
    <form onSubmit={form.onSubmit((values) => creation.mutate(values))}>
      <Stack>
        <TextInput
          label="ID"
          description="Part of its topics; cannot be changed later. Left empty, one is generated."
          {...form.getInputProps("id")}
          onChange={(event) => form.setFieldValue("id", event.currentTarget.value.trim())}
          data-autofocus
          autoComplete="off"
        />
        <TextInput label="Name" maxLength={256} {...form.getInputProps("name")} />
        <TagsInput label="Labels" description="Press Enter after each." {...form.getInputProps("labels")} />
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
        Lists do not show the token; the credentials of the device do.
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

import { DeviceId } from "@devmesh/contracts/model/device-id";
import { Button, TagsInput, Text, TextInput } from "@mantine/core";
import { useForm } from "@mantine/form";
import { useMutation } from "@tanstack/react-query";
import { Link } from "wouter";
import { useApi } from "../../../api/api-context.tsx";
import type { CallResult } from "../../../api/route-types.ts";
import { Snippet } from "../../../components/code-block.tsx";
import { FormDialog } from "../../../components/form-dialog.tsx";
import { issueOf } from "../../../components/issue-of.ts";
import { readCommand } from "../connect/clients.ts";
import { ConnectWizard } from "../connect/connect-wizard.tsx";

/** Creates a device and shows how it connects. */
export function CreateDevice({ onClose }: { readonly onClose: () => void }) {
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
  return (
    <FormDialog
      title="Add a device"
      size="xl"
      action="Create"
      onSubmit={form.onSubmit((values) => creation.mutate(values))}
      work={creation}
      failure="The device was not created"
      result={creation.data === undefined ? null : resultOf(creation.data)}
      onClose={onClose}
    >
      <TextInput
        label="ID"
        description="Part of its MQTT topics; cannot be changed later. Leave it empty to have one generated."
        {...form.getInputProps("id")}
        onChange={(event) => form.setFieldValue("id", event.currentTarget.value.trim())}
        data-autofocus
        autoComplete="off"
      />
      <TextInput label="Name" maxLength={256} {...form.getInputProps("name")} />
      <TagsInput label="Labels" description="Press Enter after each." {...form.getInputProps("labels")} />
    </FormDialog>
  );
}

function resultOf(device: CallResult<"createDevice">) {
  return {
    message: `${device.id} is created.`,
    details: <Connection device={device} />,
    next: (
      <Button variant="default" component={Link} href={`/devices/${device.id}`}>
        Open the device
      </Button>
    ),
  };
}

function Connection({ device: { id, token } }: { readonly device: CallResult<"createDevice"> }) {
  return (
    <>
      <Snippet label="Device ID, its MQTT user name" text={id} />
      <Snippet label="Token, its MQTT password" text={token} />
      <Text size="xs" c="dimmed">
        You can find the token and these examples later under Credentials, on the device's page.
      </Text>
      <ConnectWizard id={id} token={token} />
      <Snippet label="Read it by REST" text={readCommand(id)} />
    </>
  );
}

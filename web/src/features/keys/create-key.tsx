import type { ApiKey } from "@devmesh/contracts/model/api-key";
import { Alert, Button, SegmentedControl, Stack, Text, TextInput } from "@mantine/core";
import { useForm } from "@mantine/form";
import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useApi } from "../../api/api-context.tsx";
import { queryKeys } from "../../api/query-keys.ts";
import { Dialog } from "../../components/dialog.tsx";
import { DialogActions, SubmitOrCancel } from "../../components/dialog-actions.tsx";
import { Failure } from "../../components/failure.tsx";
import { Snippet } from "../../components/snippet.tsx";

/** Creates a key and shows it. */
export function CreateKey({ onClose }: { readonly onClose: () => void }) {
  return (
    <Dialog onClose={onClose} title="Create a key">
      <Creation onClose={onClose} />
    </Dialog>
  );
}

function Creation({ onClose }: { readonly onClose: () => void }) {
  const api = useApi();
  const queries = useQueryClient();
  const form = useForm({
    initialValues: { access: "full" as ApiKey["access"], deviceId: "", name: "", expires: "" },
  });
  const { access } = form.values;
  const creation = useMutation({
    mutationFn: ({ deviceId, name, expires }: typeof form.values) =>
      api.call("createKey", {
        body: {
          access,
          ...(access === "device" && { device_id: deviceId.trim() }),
          ...(name !== "" && { name }),
          ...(expires !== "" && { expires_at: new Date(expires).toISOString() }),
        },
      }),
    onSuccess: () => queries.invalidateQueries({ queryKey: queryKeys.keys }),
  });

  if (creation.data !== undefined) return <Created apiKey={creation.data} onClose={onClose} />;

  return (
    <form onSubmit={form.onSubmit((values) => creation.mutate(values))}>
      <Stack>
        <SegmentedControl
          aria-label="Kind of key"
          {...form.getInputProps("access")}
          data={[
            { value: "full", label: "Master key" },
            { value: "device", label: "Device key" },
          ]}
        />
        <Text size="sm" c="dimmed">
          {access === "full"
            ? "May do everything that this dashboard does."
            : "For the customer of one device: sees its data and the app sections of its shadow, changes the latter."}
        </Text>
        {access === "device" && (
          <TextInput label="Device ID" required {...form.getInputProps("deviceId")} autoComplete="off" />
        )}
        <TextInput
          label="Name"
          description="What it is for."
          maxLength={256}
          {...form.getInputProps("name")}
          data-autofocus
        />
        <TextInput
          type="datetime-local"
          label="Expires"
          description="Left empty, never."
          {...form.getInputProps("expires")}
        />
        {creation.error !== null && <Failure error={creation.error} title="The key was not created" />}
        <SubmitOrCancel action="Create" running={creation.isPending} onCancel={onClose} />
      </Stack>
    </form>
  );
}

function Created({ apiKey, onClose }: { readonly apiKey: ApiKey; readonly onClose: () => void }) {
  return (
    <Stack>
      <Alert color="teal" variant="light" role="status">
        The key is created. Copy it now: it may not be shown again.
      </Alert>
      {apiKey.key !== null && <Snippet label={apiKey.name ?? "Key"} text={apiKey.key} />}
      <DialogActions>
        <Button onClick={onClose} data-autofocus>
          Done
        </Button>
      </DialogActions>
    </Stack>
  );
}

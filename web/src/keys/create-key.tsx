import type { ApiKey } from "@devmesh/contracts/model/api-key";
import { Alert, Button, SegmentedControl, Stack, Text, TextInput } from "@mantine/core";
import { useMutation, useQueryClient } from "@tanstack/react-query";
import { type FormEvent, useState } from "react";
import { useApi } from "../api/api-context.tsx";
import { queryKeys } from "../api/query-keys.ts";
import { Dialog } from "../elements/dialog.tsx";
import { DialogActions, SubmitOrCancel } from "../elements/dialog-actions.tsx";
import { Failure } from "../elements/failure.tsx";
import { Snippet } from "../elements/snippet.tsx";

/** Asks for a new key; once it is there, shows it. */
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
  const [access, setAccess] = useState<ApiKey["access"]>("full");
  const [deviceId, setDeviceId] = useState("");
  const [name, setName] = useState("");
  const [expires, setExpires] = useState("");
  const creation = useMutation({
    mutationFn: () =>
      api.call("createKey", {
        body: {
          access,
          ...(access === "device" && { device_id: deviceId }),
          ...(name !== "" && { name }),
          ...(expires !== "" && { expires_at: new Date(expires).toISOString() }),
        },
      }),
    onSuccess: () => queries.invalidateQueries({ queryKey: queryKeys.keys }),
  });

  if (creation.data !== undefined) return <Created apiKey={creation.data} onClose={onClose} />;

  const submit = (event: FormEvent) => {
    event.preventDefault();
    creation.mutate();
  };
  return (
    <form onSubmit={submit}>
      <Stack>
        <SegmentedControl
          aria-label="Kind of key"
          value={access}
          onChange={(value) => setAccess(value === "device" ? "device" : "full")}
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
          <TextInput
            label="Device ID"
            required
            value={deviceId}
            onChange={(event) => setDeviceId(event.currentTarget.value.trim())}
            autoComplete="off"
          />
        )}
        <TextInput
          label="Name"
          description="What it is for, so that you know it again."
          value={name}
          maxLength={256}
          onChange={(event) => setName(event.currentTarget.value)}
          data-autofocus
        />
        <TextInput
          type="datetime-local"
          label="Expires"
          description="Left empty, never."
          value={expires}
          onChange={(event) => setExpires(event.currentTarget.value)}
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
        The key is created. Copy it now: it may be that it is not shown again.
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

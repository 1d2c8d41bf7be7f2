import type { Device } from "@devmesh/contracts/model/device";
import { Button, TextInput } from "@mantine/core";
import { useMutation, useQueryClient } from "@tanstack/react-query";
import { type FormEvent, useState } from "react";
import { useApi } from "../../../api/api-context.tsx";
import { queryKeys } from "../../../api/query-keys.ts";
import { showToast } from "../../../components/toast.tsx";

/** Properties of {@link DeviceNameEditor}. */
interface DeviceNameEditorProps {
  readonly device: Device;
  readonly onClose: () => void;
}

/** Edits the name of a device in its place: Enter saves, Escape returns. */
export function DeviceNameEditor({ device, onClose }: DeviceNameEditorProps) {
  const api = useApi();
  const queries = useQueryClient();
  const [name, setName] = useState(device.name ?? "");
  const naming = useMutation({
    mutationFn: (changed: string) =>
      api.call("patchDevice", {
        params: { id: device.id },
        body: { name: changed === "" ? null : changed },
      }),
    onSuccess(changed) {
      queries.setQueryData(queryKeys.device(device.id), changed);
      showToast({ title: "The name is saved" });
      onClose();
    },
  });
  const submit = (event: FormEvent) => {
    event.preventDefault();
    if (name.trim() === (device.name ?? "")) onClose();
    else naming.mutate(name.trim());
  };
  return (
    <form
      onSubmit={submit}
      style={{ display: "flex", flexWrap: "wrap", gap: 8 }}
      onKeyDown={({ key }) => {
        if (key === "Escape") onClose();
      }}
    >
      <TextInput
        aria-label="Name"
        placeholder={device.id}
        maxLength={256}
        autoFocus
        value={name}
        onChange={(event) => setName(event.currentTarget.value)}
        error={naming.error?.message}
        errorProps={{ role: "alert" }}
        w="min(22rem, 70vw)"
      />
      <Button type="submit" loading={naming.isPending}>
        Save
      </Button>
      <Button variant="subtle" onClick={onClose}>
        Cancel
      </Button>
    </form>
  );
}

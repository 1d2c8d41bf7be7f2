import type { ApiKey } from "@devmesh/contracts/model/api-key";
import { SegmentedControl, Text, TextInput } from "@mantine/core";
import { useForm } from "@mantine/form";
import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useApi } from "../../api/api-context.tsx";
import { queryKeys } from "../../api/query-keys.ts";
import { Snippet } from "../../components/code-block.tsx";
import { FormDialog } from "../../components/form-dialog.tsx";
import { TimeField, timeFieldFault, timeInField } from "../../components/time-field.tsx";

/** Creates a key and shows it. */
export function CreateKey({ onClose }: { readonly onClose: () => void }) {
  const api = useApi();
  const queries = useQueryClient();
  const form = useForm({
    initialValues: { access: "full" as ApiKey["access"], deviceId: "", name: "", expires: "" },
    validate: { expires: timeFieldFault },
  });
  const { access } = form.values;
  const creation = useMutation({
    mutationFn: ({ deviceId, name, expires }: typeof form.values) =>
      api.call("createKey", {
        body: {
          access,
          ...(access === "device" && { device_id: deviceId.trim() }),
          ...(name !== "" && { name }),
          ...(expires.trim() !== "" && { expires_at: timeInField(expires) }),
        },
      }),
    onSuccess: () => queries.invalidateQueries({ queryKey: queryKeys.keys }),
  });
  return (
    <FormDialog
      title="Create a key"
      action="Create"
      onSubmit={form.onSubmit((values) => creation.mutate(values))}
      work={creation}
      failure="The key was not created"
      result={creation.data === undefined ? null : resultOf(creation.data)}
      onClose={onClose}
    >
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
          ? "Full access: everything that this dashboard can do."
          : "Access to one device: reads its data, and reads and changes the app sections of its shadow."}
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
      <TimeField
        label="Expires"
        description="Leave it empty for a key that does not expire."
        {...form.getInputProps("expires")}
      />
    </FormDialog>
  );
}

function resultOf({ key, name }: ApiKey) {
  return {
    message: "The key is created. Copy it now: it may not be shown again.",
    details: key !== null && <Snippet label={name ?? "Key"} text={key} />,
  };
}

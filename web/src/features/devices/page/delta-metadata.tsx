import { Switch } from "@mantine/core";
import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useApi } from "../../../api/api-context.tsx";
import { queryKeys } from "../../../api/query-keys.ts";
import { showToast } from "../../../components/toast.tsx";
import type { SectionProps } from "./section.ts";

/** Whether the device is sent the times of its delta, which small buffers cannot hold; saved at once. */
export function DeltaMetadata({ device: { id, delta_metadata } }: SectionProps) {
  const api = useApi();
  const queries = useQueryClient();
  const change = useMutation({
    mutationFn: (wanted: boolean) =>
      api.call("patchDevice", { params: { id }, body: { delta_metadata: wanted } }),
    onSuccess(changed) {
      queries.setQueryData(queryKeys.device(id), changed);
      showToast({
        title: changed.delta_metadata ? "The delta has metadata" : "The delta has no metadata",
      });
    },
  });
  return (
    <Switch
      label="Metadata in the delta"
      title="Times of the values, which a small buffer of the device cannot hold"
      checked={delta_metadata}
      disabled={change.isPending}
      error={change.error?.message}
      onChange={(event) => change.mutate(event.currentTarget.checked)}
    />
  );
}

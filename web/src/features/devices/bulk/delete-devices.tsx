import { Text } from "@mantine/core";
import { useQueryClient } from "@tanstack/react-query";
import { useEffect } from "react";
import { useApi } from "../../../api/api-context.tsx";
import { forgetDevices } from "../shared/device-lists.ts";
import type { DevicesDialogProps } from "./devices-dialog.ts";
import { useDeviceWork } from "./use-device-work.ts";
import { WorkDialog } from "./work-dialog.tsx";

/** Deletes devices with all their data. */
export function DeleteDevices({
  ids,
  onClose,
  onDeleted,
}: DevicesDialogProps & { readonly onDeleted: () => void }) {
  const api = useApi();
  const queries = useQueryClient();
  const work = useDeviceWork((id, signal) => api.call("deleteDevice", { params: { id }, signal }));
  const { state, outcomes } = work;
  const ended = state === "finished" || state === "cancelled";
  useEffect(() => {
    if (ended)
      forgetDevices(
        queries,
        outcomes.filter(({ kind }) => kind === "done").map(({ id }) => id),
      );
  }, [queries, ended, outcomes]);
  return (
    <WorkDialog
      title={ids.length === 1 ? `Delete ${ids[0]}?` : `Delete ${ids.length} devices?`}
      action="Delete"
      destructive
      ready
      done="deleted"
      work={work}
      onStart={() => work.start(ids)}
      onClose={() => {
        if (work.state !== "idle") onDeleted();
        onClose();
      }}
    >
      <Text size="sm">
        Their connections end, and their keys, shadows and stored data go with them. This cannot be undone.
      </Text>
      {ids.length > 1 && (
        <Text size="sm" c="dimmed" lineClamp={3}>
          {ids.slice(0, 50).join(", ")}
          {ids.length > 50 && " …"}
        </Text>
      )}
    </WorkDialog>
  );
}

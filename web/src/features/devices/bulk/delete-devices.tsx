import { Text, TextInput } from "@mantine/core";
import { useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { useApi } from "../../../api/api-context.tsx";
import { applyToLists } from "../shared/device-lists.ts";
import { type DevicesDialogProps, inWords, WorkDialog } from "./work-dialog.tsx";

/** Properties of {@link DeleteDevices}. */
interface DeleteDevicesProps extends DevicesDialogProps {
  /** Called before `onClose` if the deletion was started. */
  readonly onStarted: () => void;
}

/** Deletes devices with all their data. */
export function DeleteDevices({ ids, onClose, onStarted }: DeleteDevicesProps) {
  const api = useApi();
  const queries = useQueryClient();
  const [typed, setTyped] = useState("");
  const isConfirmed = ids.length === 1 || typed.trim() === String(ids.length);
  return (
    <WorkDialog
      ids={ids}
      title={`Delete ${inWords(ids)}?`}
      name={`Delete ${inWords(ids)}`}
      action="Delete"
      destructive
      ready={isConfirmed}
      done="deleted"
      act={(id, signal) => api.call("deleteDevice", { params: { id }, signal })}
      onEnd={(outcomes) => {
        // The lists need not wait for the frames.
        const deleted = outcomes.filter(({ kind }) => kind === "done");
        applyToLists(
          queries,
          deleted.map(({ id }) => ({ kind: "deleted", id })),
        );
      }}
      onClose={(started) => {
        if (started) onStarted();
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
      {ids.length > 1 && (
        <Text size="sm">
          This tab deletes them, one after the other, and shows how far it is: keep it open. Where it is
          closed before the end, or you sign out, the rest stays as it is.
        </Text>
      )}
      {ids.length > 1 && (
        <TextInput
          label="Number of devices to delete"
          description={`Type ${ids.length} to confirm.`}
          inputMode="numeric"
          autoComplete="off"
          value={typed}
          onChange={(event) => setTyped(event.currentTarget.value)}
          data-autofocus
        />
      )}
    </WorkDialog>
  );
}

import { TagsInput } from "@mantine/core";
import { useState } from "react";
import { useApi } from "../api/api-context.tsx";
import type { DevicesDialogProps } from "./devices-dialog.ts";
import { labelDevice } from "./labelling.ts";
import { useDeviceWork } from "./use-device-work.ts";
import { WorkDialog } from "./work-dialog.tsx";

/** Adds labels to devices and takes others away. */
export function LabelDevices({ ids, onClose }: DevicesDialogProps) {
  const api = useApi();
  const work = useDeviceWork();
  const [add, setAdd] = useState<string[]>([]);
  const [remove, setRemove] = useState<string[]>([]);
  return (
    <WorkDialog
      title={ids.length === 1 ? `Label ${ids[0]}` : `Label ${ids.length} devices`}
      action="Label"
      ready={add.length + remove.length > 0}
      done="labelled"
      work={work}
      onStart={() => work.start(ids, (id, signal) => labelDevice(api, id, { add, remove }, signal))}
      onClose={onClose}
    >
      <TagsInput
        label="Add"
        description="Press Enter after each."
        value={add}
        onChange={setAdd}
        data-autofocus
      />
      <TagsInput label="Remove" description="Press Enter after each." value={remove} onChange={setRemove} />
    </WorkDialog>
  );
}

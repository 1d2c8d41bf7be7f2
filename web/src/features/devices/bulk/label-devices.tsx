import { TagsInput } from "@mantine/core";
import { useForm } from "@mantine/form";
import { useApi } from "../../../api/api-context.tsx";
import { labelDevice } from "../shared/labels.ts";
import type { DevicesDialogProps } from "./devices-dialog.ts";
import { useDeviceWork } from "./use-device-work.ts";
import { WorkDialog } from "./work-dialog.tsx";

/** Adds labels to devices and removes others. */
export function LabelDevices({ ids, onClose }: DevicesDialogProps) {
  const api = useApi();
  const form = useForm({ initialValues: { add: [] as string[], remove: [] as string[] } });
  const work = useDeviceWork((id, signal) => labelDevice(api, id, form.values, signal));
  return (
    <WorkDialog
      title={ids.length === 1 ? `Label ${ids[0]}` : `Label ${ids.length} devices`}
      action="Label"
      ready={form.values.add.length + form.values.remove.length > 0}
      done="labelled"
      work={work}
      onStart={() => work.start(ids)}
      onClose={onClose}
    >
      <TagsInput
        label="Add"
        description="Press Enter after each."
        {...form.getInputProps("add")}
        data-autofocus
      />
      <TagsInput label="Remove" description="Press Enter after each." {...form.getInputProps("remove")} />
    </WorkDialog>
  );
}

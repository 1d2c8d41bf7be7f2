import { TagsInput } from "@mantine/core";
import { useForm } from "@mantine/form";
import { useApi } from "../../../api/api-context.tsx";
import { labelDevice } from "../shared/patch-device.ts";
import { type DevicesDialogProps, inWords, WorkDialog } from "./work-dialog.tsx";

/** Adds labels to devices and removes others. */
export function LabelDevices({ ids, onClose }: DevicesDialogProps) {
  const api = useApi();
  const form = useForm({ initialValues: { add: [] as string[], remove: [] as string[] } });
  const { add, remove } = form.values;
  return (
    <WorkDialog
      ids={ids}
      name={`Label ${inWords(ids)}`}
      action="Label"
      ready={add.length + remove.length > 0}
      done="labelled"
      act={(id, signal) => labelDevice(api, id, { add, remove }, signal)}
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

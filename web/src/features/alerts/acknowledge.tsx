import type { Alert } from "@devmesh/contracts/model/alert";
import { Text, Textarea } from "@mantine/core";
import { useForm } from "@mantine/form";
import { FormDialog } from "../../components/form-dialog.tsx";
import { countText } from "../../components/number-text.ts";
import { alertDeviceText } from "./alert-words.ts";
import { useAlertChange } from "./use-alerts.ts";

/** Properties of {@link Acknowledge}. */
interface AcknowledgeProps {
  readonly alerts: readonly Alert[];
  /** Called when all are acknowledged. */
  readonly onDone?: () => void;
  readonly onClose: () => void;
}

/** Acknowledges alerts, with a note on each of them. */
export function Acknowledge({ alerts, onDone, onClose }: AcknowledgeProps) {
  const form = useForm({ initialValues: { note: "" } });
  const change = useAlertChange({
    onSuccess() {
      onDone?.();
      onClose();
    },
  });
  const [first] = alerts;
  return (
    <FormDialog
      title={alerts.length === 1 ? "Acknowledge the alert" : `Acknowledge ${countText(alerts.length)} alerts`}
      action="Acknowledge"
      onSubmit={form.onSubmit(({ note }) =>
        change.mutate({
          ids: alerts.map(({ id }) => id),
          acknowledged: true,
          ...(note.trim() !== "" && { note: note.trim() }),
        }),
      )}
      work={change}
      failure="Not all alerts were acknowledged"
      result={null}
      onClose={onClose}
    >
      {alerts.length === 1 && first !== undefined && (
        <Text size="sm">
          {first.rule_name}, {alertDeviceText(first)}
        </Text>
      )}
      <Textarea
        label="Note"
        description="Optional. It replaces the note on each of them."
        maxLength={1_000}
        autosize
        minRows={3}
        maxRows={8}
        {...form.getInputProps("note")}
        data-autofocus
      />
    </FormDialog>
  );
}

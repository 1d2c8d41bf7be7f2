import { Text } from "@mantine/core";
import { useApi } from "../../../api/api-context.tsx";
import { CallFields, paramsIn, useCallForm } from "../shared/call-form.tsx";
import { type DevicesDialogProps, inWords, WorkDialog } from "./work-dialog.tsx";

/** Calls the same function of each device. */
export function CallDevices({ ids, onClose }: DevicesDialogProps) {
  const api = useApi();
  const { form, ready } = useCallForm();
  const { func, params, timeout } = form.values;
  return (
    <WorkDialog
      ids={ids}
      title={`Call a function of ${inWords(ids)}`}
      name={`Call ${func} of ${inWords(ids)}`}
      action="Call"
      ready={ready}
      done="answered"
      act={(id, signal) =>
        api.call("callFunction", {
          params: { id, func },
          query: { timeout },
          body: paramsIn(params).value,
          signal,
        })
      }
      onClose={onClose}
    >
      <CallFields form={form}>
        <Text size="sm" c="dimmed" pb={8}>
          Calls of offline devices fail at once.
        </Text>
      </CallFields>
    </WorkDialog>
  );
}

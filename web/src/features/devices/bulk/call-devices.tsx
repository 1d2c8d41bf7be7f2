import { Text } from "@mantine/core";
import { useApi } from "../../../api/api-context.tsx";
import { CallFields, useCallForm } from "../shared/call-form.tsx";
import { paramsIn } from "../shared/call-params.ts";
import type { DevicesDialogProps } from "./devices-dialog.ts";
import { useDeviceWork } from "./use-device-work.ts";
import { WorkDialog } from "./work-dialog.tsx";

/** Calls the same function of each device. */
export function CallDevices({ ids, onClose }: DevicesDialogProps) {
  const api = useApi();
  const { form, ready } = useCallForm();
  const { func, params, timeout } = form.values;
  const work = useDeviceWork((id, signal) =>
    api.call("callFunction", {
      params: { id, func },
      query: { timeout },
      body: paramsIn(params).value,
      signal,
    }),
  );
  return (
    <WorkDialog
      title={ids.length === 1 ? `Call a function of ${ids[0]}` : `Call a function of ${ids.length} devices`}
      action="Call"
      ready={ready}
      done="answered"
      work={work}
      onStart={() => work.start(ids)}
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

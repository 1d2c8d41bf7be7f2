import { FunctionName } from "@devmesh/contracts/model/acl";
import { rpcTimeout } from "@devmesh/contracts/rpc-bridge";
import { Group, Text, TextInput } from "@mantine/core";
import { useState } from "react";
import { useApi } from "../api/api-context.tsx";
import { paramsIn } from "../device/rpc-params.ts";
import { RpcTimeoutInput } from "../device/rpc-timeout-input.tsx";
import { JsonEditor } from "../elements/json-editor.tsx";
import type { DevicesDialogProps } from "./devices-dialog.ts";
import { useDeviceWork } from "./use-device-work.ts";
import { WorkDialog } from "./work-dialog.tsx";

/** Calls the same function of each device. */
export function CallDevices({ ids, onClose }: DevicesDialogProps) {
  const api = useApi();
  const work = useDeviceWork();
  const [func, setFunc] = useState("");
  const [text, setText] = useState("");
  const [timeout, setTimeout] = useState<number>(rpcTimeout.default);
  const params = paramsIn(text);
  const wrongFunction = func === "" ? null : (FunctionName.safeParse(func).error?.issues[0]?.message ?? null);
  return (
    <WorkDialog
      title={ids.length === 1 ? `Call a function of ${ids[0]}` : `Call a function of ${ids.length} devices`}
      action="Call"
      ready={func !== "" && wrongFunction === null && params.ready}
      done="answered"
      work={work}
      onStart={() =>
        work.start(ids, async (id, signal) =>
          api.call("callFunction", { params: { id, func }, query: { timeout }, body: params.value, signal }),
        )
      }
      onClose={onClose}
    >
      <TextInput
        label="Function"
        placeholder="Sys.GetInfo"
        value={func}
        onChange={(event) => setFunc(event.currentTarget.value.trim())}
        error={wrongFunction}
        data-autofocus
        autoComplete="off"
        spellCheck={false}
      />
      <JsonEditor
        label="Parameters"
        description="A JSON object or array; left empty, none."
        text={text}
        parsed={params.parsed}
        wrong={params.wrong}
        onChange={setText}
      />
      <Group align="end">
        <RpcTimeoutInput value={timeout} onChange={setTimeout} />
        <Text size="sm" c="dimmed" pb={8}>
          Devices that are offline fail at once.
        </Text>
      </Group>
    </WorkDialog>
  );
}

import { FunctionName } from "@devmesh/contracts/model/acl";
import { RpcParams } from "@devmesh/contracts/rest/rpc";
import { rpcTimeout } from "@devmesh/contracts/rpc-bridge";
import { Group, JsonInput, NumberInput, Text, TextInput } from "@mantine/core";
import { useState } from "react";
import { useApi } from "../api/api-context.tsx";
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
  const params = parametersOf(text);
  const wrongFunction = func === "" ? null : (FunctionName.safeParse(func).error?.issues[0]?.message ?? null);
  return (
    <WorkDialog
      title={ids.length === 1 ? `Call a function of ${ids[0]}` : `Call a function of ${ids.length} devices`}
      action="Call"
      ready={func !== "" && wrongFunction === null && params.wrong === null}
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
      <JsonInput
        label="Parameters"
        description="A JSON object or array; left empty, none."
        value={text}
        onChange={setText}
        error={params.wrong}
        formatOnBlur
        autosize
        minRows={3}
        maxRows={12}
        styles={{ input: { fontFamily: "var(--mantine-font-family-monospace)" } }}
      />
      <Group align="end">
        <NumberInput
          label="Time to answer, in ms"
          value={timeout}
          min={rpcTimeout.min}
          max={rpcTimeout.max}
          step={1_000}
          onChange={(value) => setTimeout(Number(value) || rpcTimeout.default)}
          w={180}
        />
        <Text size="sm" c="dimmed" pb={8}>
          Devices that are offline fail at once.
        </Text>
      </Group>
    </WorkDialog>
  );
}

function parametersOf(text: string): { readonly value: RpcParamsInput; readonly wrong: string | null } {
  if (text.trim() === "") return { value: undefined, wrong: null };
  try {
    return { value: RpcParams.parse(JSON.parse(text)), wrong: null };
  } catch (error) {
    const wrong = error instanceof SyntaxError ? error.message : "must be a JSON object or array";
    return { value: undefined, wrong };
  }
}

type RpcParamsInput = ReturnType<typeof RpcParams.parse> | undefined;

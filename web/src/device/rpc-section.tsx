import { FunctionName } from "@devmesh/contracts/model/acl";
import { rpcTimeout } from "@devmesh/contracts/rpc-bridge";
import { Alert, Autocomplete, Button, Code, Group, Paper, Stack, Text, Title } from "@mantine/core";
import { useMutation, useQuery } from "@tanstack/react-query";
import { type FormEvent, useState } from "react";
import { z } from "zod";
import type { ApiClient } from "../api/api-client.ts";
import { useApi } from "../api/api-context.tsx";
import { queryKeys } from "../api/query-keys.ts";
import { CopyButton } from "../elements/copy-button.tsx";
import { JsonEditor } from "../elements/json-editor.tsx";
import { Tag } from "../elements/tag.tsx";
import { forgetCalls, keepCall, type PastCall, pastCalls } from "./call-history.ts";
import { type CallOutcome, failedCall } from "./call-outcome.ts";
import { paramsIn } from "./rpc-params.ts";
import { RpcTimeoutInput } from "./rpc-timeout-input.tsx";
import type { SectionProps } from "./section.ts";

/** Calls functions of the device and keeps what came of it, for this session. */
export function RpcSection({ device }: SectionProps) {
  const { id, online } = device;
  const api = useApi();
  const [func, setFunc] = useState("");
  const [params, setParams] = useState("");
  const [timeout, setTimeout] = useState<number>(rpcTimeout.default);
  const [calls, setCalls] = useState(() => pastCalls(api, id));
  const functions = useQuery({
    queryKey: [...queryKeys.device(id), "functions"],
    queryFn: ({ signal }) => listFunctions(api, id, signal),
    enabled: online,
    retry: false,
    // It asks the device: a gap of the stream is no reason to.
    staleTime: "static",
  });
  const calling = useMutation({
    mutationFn: () => callDevice(api, id, { func, params, timeout }),
    onSuccess: (call) => setCalls(keepCall(api, id, call)),
  });

  const typed = paramsIn(params);
  const wrongFunc = func === "" ? null : (FunctionName.safeParse(func).error?.issues[0]?.message ?? null);
  const ready = func !== "" && wrongFunc === null && typed.ready;
  const submit = (event: FormEvent) => {
    event.preventDefault();
    if (ready && !calling.isPending) calling.mutate();
  };
  const repeat = (call: PastCall) => {
    setFunc(call.func);
    setParams(call.params);
    setTimeout(call.timeout);
  };
  return (
    <Stack>
      {!online && (
        <Alert color="yellow" variant="light">
          The device is offline: calls fail at once.
        </Alert>
      )}
      <form onSubmit={submit}>
        <Stack>
          <Autocomplete
            label="Function"
            description={describeFunctions(online, functions.data, functions.isFetching)}
            placeholder="Sys.GetInfo"
            data={[...new Set(functions.data ?? [])]}
            value={func}
            onChange={(value) => setFunc(value.trim())}
            error={wrongFunc}
            autoComplete="off"
            spellCheck={false}
          />
          <JsonEditor
            label="Parameters"
            description="A JSON object or array; left empty, none."
            text={params}
            parsed={typed.parsed}
            wrong={typed.wrong}
            onChange={setParams}
          />
          <Group align="end" justify="space-between">
            <RpcTimeoutInput value={timeout} onChange={setTimeout} />
            <Button type="submit" loading={calling.isPending} disabled={!ready}>
              Call
            </Button>
          </Group>
        </Stack>
      </form>
      <Group justify="space-between">
        <Title order={2} size="h4">
          Calls of this session
        </Title>
        {calls.length > 0 && (
          <Button
            size="xs"
            variant="default"
            onClick={() => {
              forgetCalls(api, id);
              setCalls([]);
            }}
          >
            Clear
          </Button>
        )}
      </Group>
      <Stack gap="xs" role="log" aria-label="Calls of this session">
        {calls.length === 0 && (
          <Text size="sm" c="dimmed">
            None yet.
          </Text>
        )}
        {calls.map((call) => (
          <Call key={`${call.startedAt} ${call.tookMs}`} call={call} onRepeat={() => repeat(call)} />
        ))}
      </Stack>
    </Stack>
  );
}

function Call({ call, onRepeat }: { readonly call: PastCall; readonly onRepeat: () => void }) {
  const { func, params, startedAt, tookMs, outcome } = call;
  const answered = outcome.kind === "answered";
  const told = answered ? JSON.stringify(outcome.result, null, 2) : outcome.detail;
  return (
    <Paper withBorder p="xs">
      <Group justify="space-between" gap="xs">
        <Group gap="xs">
          <Tag look={answered ? "good" : "bad"}>{answered ? "answered" : "failed"}</Tag>
          <Text size="sm" ff="monospace">
            {func}
          </Text>
          <Text size="xs" c="dimmed">
            {tookMs.toFixed(0)} ms, at {new Date(startedAt).toLocaleTimeString()}
          </Text>
        </Group>
        <Group gap={4}>
          {told !== null && <CopyButton text={told} what={`the answer of ${func}`} />}
          <Button size="compact-xs" variant="default" onClick={onRepeat}>
            Use again
          </Button>
        </Group>
      </Group>
      {params.trim() !== "" && (
        <Text size="xs" c="dimmed" ff="monospace" lineClamp={2}>
          {params}
        </Text>
      )}
      {!answered && (
        <Text size="sm" fw={500}>
          {outcome.title}
        </Text>
      )}
      {told !== null && (
        <Code
          block
          mt={4}
          mah={320}
          style={{ overflow: "auto" }}
          tabIndex={0}
          role="region"
          aria-label={`Answer of ${func}`}
        >
          {told}
        </Code>
      )}
    </Paper>
  );
}

function describeFunctions(
  online: boolean,
  functions: readonly string[] | undefined,
  reading: boolean,
): string {
  if (functions !== undefined) return `The device tells ${functions.length} functions by RPC.List.`;
  if (!online) return "The device is asked for its functions once it is online.";
  return reading
    ? "Asking the device for its functions."
    : "The device does not tell its functions: it answers no RPC.List.";
}

async function listFunctions(api: ApiClient, id: string, signal: AbortSignal): Promise<string[]> {
  const answer = await api.call("callFunctionWithoutParams", {
    params: { id, func: "RPC.List" },
    query: { timeout: 5_000 },
    signal,
  });
  return z.array(z.string()).parse(answer).sort();
}

/** Calls a function and tells what came of it; a failure is an outcome, too. */
async function callDevice(
  api: ApiClient,
  id: string,
  { func, params, timeout }: Pick<PastCall, "func" | "params" | "timeout">,
): Promise<PastCall> {
  const startedAt = Date.now();
  const begun = performance.now();
  let outcome: CallOutcome;
  try {
    const body = paramsIn(params).value;
    const result = await api.call("callFunction", { params: { id, func }, query: { timeout }, body });
    outcome = { kind: "answered", result };
  } catch (error) {
    outcome = failedCall(error);
  }
  return { func, params, timeout, startedAt, tookMs: performance.now() - begun, outcome };
}

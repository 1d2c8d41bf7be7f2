import { Alert, Button, Group, Paper, Stack, Text, Title } from "@mantine/core";
import { useMutation, useQuery } from "@tanstack/react-query";
import { z } from "zod";
import type { ApiClient } from "../../../api/api-client.ts";
import { useApi } from "../../../api/api-context.tsx";
import { queryKeys } from "../../../api/query-keys.ts";
import { CodeBlock } from "../../../components/code-block.tsx";
import { CopyButton } from "../../../components/copy-button.tsx";
import { durationText } from "../../../components/number-text.ts";
import { StateBadge } from "../../../components/state.tsx";
import { clockText } from "../../../components/time-in-words.ts";
import { useStreamed } from "../../../live/use-streamed.ts";
import { CallFields, paramsIn, type TypedCall, useCallForm } from "../shared/call-form.tsx";
import { type DeviceAnswer, failedCall } from "./call-outcome.ts";
import type { SectionProps } from "./section.ts";

/** A call in this session. */
interface PastCall extends TypedCall {
  /** Unix ms. */
  readonly startedAt: number;
  /** Time from the click to the response, in milliseconds. */
  readonly tookMs: number;
  readonly outcome: DeviceAnswer;
}

/** Maximum of calls that are kept of a device. */
const maxPastCalls = 50;

const noCalls: readonly PastCall[] = [];

/** Calls functions of the device and keeps the results until the session ends. */
export function RpcSection({ device }: SectionProps) {
  const { id, online } = device;
  const api = useApi();
  const { form, ready } = useCallForm();
  const [calls, updateCalls] = useStreamed(queryKeys.calls(id), noCalls, Number.POSITIVE_INFINITY);
  const functions = useQuery({
    queryKey: [...queryKeys.device(id), "functions"],
    queryFn: ({ signal }) => listFunctions(api, id, signal),
    enabled: online,
    retry: false,
    // It asks the device: a gap of the stream is no reason to.
    staleTime: "static",
  });
  const calling = useMutation({
    mutationFn: (call: TypedCall) => callDevice(api, id, call),
    onSuccess: (call) => updateCalls((before) => [call, ...before].slice(0, maxPastCalls)),
  });

  return (
    <Stack>
      {!online && <Alert color="yellow">The device is offline: calls fail at once.</Alert>}
      <form
        onSubmit={form.onSubmit((call) => {
          if (ready && !calling.isPending) calling.mutate(call);
        })}
      >
        <Stack>
          <CallFields
            form={form}
            description={describeFunctions(online, functions.data, functions.isFetching)}
            functions={functions.data}
          >
            <Button type="submit" loading={calling.isPending} disabled={!ready}>
              Call
            </Button>
          </CallFields>
        </Stack>
      </form>
      <Group justify="space-between">
        <Title order={2}>Calls of this session</Title>
        {calls.length > 0 && (
          <Button size="xs" variant="default" onClick={() => updateCalls(() => noCalls)}>
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
          <Call
            key={`${call.startedAt} ${call.tookMs}`}
            call={call}
            onRepeat={() => form.setValues({ func: call.func, params: call.params, timeout: call.timeout })}
          />
        ))}
      </Stack>
    </Stack>
  );
}

function Call({ call, onRepeat }: { readonly call: PastCall; readonly onRepeat: () => void }) {
  const { func, params, startedAt, tookMs, outcome } = call;
  const answered = outcome.kind === "answered";
  const text = answered ? JSON.stringify(outcome.result, null, 2) : outcome.detail;
  return (
    <Paper withBorder p="xs">
      <Group justify="space-between" gap="xs">
        <Group gap="xs">
          <StateBadge look={answered ? "good" : "bad"}>{answered ? "answered" : "failed"}</StateBadge>
          <Text size="sm" ff="monospace">
            {func}
          </Text>
          <Text size="xs" c="dimmed">
            {durationText(Math.round(tookMs))}, at {clockText(startedAt)}
          </Text>
        </Group>
        <Group gap={4}>
          {text !== null && <CopyButton text={text} what={`the answer of ${func}`} />}
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
      {text !== null && (
        <CodeBlock label={`Answer of ${func}`} maxHeight={320}>
          {text}
        </CodeBlock>
      )}
    </Paper>
  );
}

function describeFunctions(
  online: boolean,
  functions: readonly string[] | undefined,
  reading: boolean,
): string {
  if (functions !== undefined) return `The device has ${functions.length} functions, as listed by RPC.List.`;
  if (!online) return "Its functions are listed once the device is online.";
  return reading
    ? "Reading the list of functions from the device."
    : "The device does not list its functions: it does not answer RPC.List.";
}

async function listFunctions(api: ApiClient, id: string, signal: AbortSignal): Promise<string[]> {
  const answer = await api.call("callFunctionWithoutParams", {
    params: { id, func: "RPC.List" },
    query: { timeout: 5_000 },
    signal,
  });
  return z.array(z.string()).parse(answer).sort();
}

/** Calls a function; a failure is an outcome, too. */
async function callDevice(
  api: ApiClient,
  id: string,
  { func, params, timeout }: TypedCall,
): Promise<PastCall> {
  const startedAt = Date.now();
  const begun = performance.now();
  let outcome: DeviceAnswer;
  try {
    const body = paramsIn(params).value;
    const result = await api.call("callFunction", { params: { id, func }, query: { timeout }, body });
    outcome = { kind: "answered", result };
  } catch (error) {
    outcome = failedCall(error);
  }
  return { func, params, timeout, startedAt, tookMs: performance.now() - begun, outcome };
}

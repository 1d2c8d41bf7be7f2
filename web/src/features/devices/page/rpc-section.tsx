import { Alert, Button, Group, NativeSelect, Paper, Stack, Text, Title } from "@mantine/core";
import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { useLocation } from "wouter";
import { useApi } from "../../../api/api-context.tsx";
import { queryKeys } from "../../../api/query-keys.ts";
import { CodeBlock } from "../../../components/code-block.tsx";
import { CopyButton } from "../../../components/copy-button.tsx";
import { Failure } from "../../../components/failure.tsx";
import { countText, durationText } from "../../../components/number-text.ts";
import { StateBadge } from "../../../components/state.tsx";
import { clockText } from "../../../components/time-in-words.ts";
import { showToast } from "../../../components/toast.tsx";
import { CallFields, paramsIn, type TypedCall, useCallForm } from "../shared/call-form.tsx";
import { type PastCall, useDeviceCalls } from "./device-calls.ts";
import type { SectionProps } from "./section.ts";

/** How long a call may wait for its device, as ISO 8601; none fails at once where the device is offline. */
const waits = [
  { value: "", label: "the call fails" },
  { value: "PT1H", label: "it waits for an hour" },
  { value: "P1D", label: "it waits for a day" },
  { value: "P7D", label: "it waits for a week" },
];

/** Calls functions of the device and keeps the results until the session ends. */
export function RpcSection({ device }: SectionProps) {
  const { form, ready } = useCallForm();
  const { calls, functions, calling, clear } = useDeviceCalls(device, true);
  const [wait, setWait] = useState("");
  const waiting = useWaitingCall(device.id);
  const isPending = calling.isPending || waiting.isPending;
  return (
    <Stack>
      {!device.online && wait === "" && (
        <Alert color="yellow">The device is offline: calls fail at once, unless they wait for it.</Alert>
      )}
      <form
        onSubmit={form.onSubmit((call) => {
          if (!ready || isPending) return;
          if (wait === "") calling.mutate(call);
          else waiting.mutate({ ...call, wait });
        })}
      >
        <Stack maw={560}>
          <CallFields
            form={form}
            description={describeFunctions(device.online, functions.data, functions.isFetching)}
            functions={functions.data}
          >
            <NativeSelect
              label="If it does not listen"
              data={waits}
              value={wait}
              onChange={(event) => setWait(event.currentTarget.value)}
            />
            <Button type="submit" loading={isPending} disabled={!ready}>
              Call
            </Button>
          </CallFields>
          <Failure error={waiting.error} title="The call could not be stored" />
        </Stack>
      </form>
      <Group justify="space-between">
        <Title order={2}>Calls of this session</Title>
        {calls.length > 0 && (
          <Button size="xs" variant="default" onClick={clear}>
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

/** Stores a call that is sent when the device listens. */
function useWaitingCall(id: string) {
  const api = useApi();
  const queries = useQueryClient();
  const [, navigate] = useLocation();
  return useMutation({
    mutationFn: ({ func, params, timeout, wait }: TypedCall & { readonly wait: string }) =>
      api.call("callFunction", {
        params: { id, func },
        query: { timeout, wait },
        body: paramsIn(params).value,
      }),
    onSuccess: async (_, { func }) => {
      await queries.invalidateQueries({ queryKey: queryKeys.executions(id) });
      showToast({
        title: `${func} is stored`,
        text: "It is sent as soon as the device listens.",
        action: { label: "Work", run: () => navigate(`/devices/${id}/work`) },
      });
    },
  });
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
  if (functions !== undefined)
    return `The device has ${countText(functions.length)} functions, as listed by RPC.List.`;
  if (!online) return "Its functions are listed once the device is online.";
  return reading
    ? "Reading the list of functions from the device."
    : "The device does not list its functions: it does not answer RPC.List.";
}

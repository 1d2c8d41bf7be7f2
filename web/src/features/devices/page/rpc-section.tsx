import { Alert, Button, Group, Paper, Stack, Text, Title } from "@mantine/core";
import { CodeBlock } from "../../../components/code-block.tsx";
import { CopyButton } from "../../../components/copy-button.tsx";
import { countText, durationText } from "../../../components/number-text.ts";
import { StateBadge } from "../../../components/state.tsx";
import { clockText } from "../../../components/time-in-words.ts";
import { CallFields, useCallForm } from "../shared/call-form.tsx";
import { type PastCall, useDeviceCalls } from "./device-calls.ts";
import type { SectionProps } from "./section.ts";

/** Calls functions of the device and keeps the results until the session ends. */
export function RpcSection({ device }: SectionProps) {
  const { form, ready } = useCallForm();
  const { calls, functions, calling, clear } = useDeviceCalls(device, true);
  return (
    <Stack>
      {!device.online && <Alert color="yellow">The device is offline: calls fail at once.</Alert>}
      <form
        onSubmit={form.onSubmit((call) => {
          if (ready && !calling.isPending) calling.mutate(call);
        })}
      >
        <Stack>
          <CallFields
            form={form}
            description={describeFunctions(device.online, functions.data, functions.isFetching)}
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

import type { Execution } from "@devmesh/contracts/model/execution";
import { Group, Progress, Text } from "@mantine/core";
import { serverNow } from "../../../api/server-clock.ts";
import { shareText } from "../../../components/number-text.ts";
import { remainingMs, remainingText } from "../../../components/progress-text.ts";
import { outcomeText } from "./execution-words.ts";

/** JSON would break at the hyphens in its names and times. */
const brokenAnywhere = { wordBreak: "break-all" } as const;

/** What became of an execution, what it waits for, or how much of a file the device has. */
export function ExecutionProgress({ execution }: { readonly execution: Execution }) {
  const { state, stage, percent, sent_at, device_id } = execution;
  const text = outcomeText(execution);
  if (state !== "sent" || stage !== "transferring" || percent === null)
    return (
      <Text
        size="xs"
        lineClamp={2}
        miw={160}
        title={text}
        style={{ overflowWrap: "anywhere", ...(/^[[{"]/.test(text) && brokenAnywhere) }}
      >
        {text}
      </Text>
    );
  const share = percent / 100;
  const elapsedMs = sent_at === null ? 0 : serverNow() - Date.parse(sent_at);
  return (
    <Group gap={8} wrap="nowrap" w={220}>
      <Progress miw={60} flex={1} size="sm" value={percent} aria-label={`Transfer to ${device_id}`} />
      <Text span size="xs" style={{ whiteSpace: "nowrap" }}>
        {[shareText(share), remainingText(remainingMs(elapsedMs, share))]
          .filter((part) => part !== "")
          .join(", ")}
      </Text>
    </Group>
  );
}

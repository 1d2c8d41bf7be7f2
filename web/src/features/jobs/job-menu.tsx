import type { Execution } from "@devmesh/contracts/model/execution";
import type { Job } from "@devmesh/contracts/model/job";
import { Menu } from "@mantine/core";
import { Download, EllipsisVertical, ListChecks } from "lucide-react";
import { useLocation } from "wouter";
import { useApi } from "../../api/api-context.tsx";
import { nextCursor } from "../../api/next-page.ts";
import { type BackgroundWork, useBackgroundWork } from "../../components/background-work.ts";
import { saveCsv } from "../../components/csv.ts";
import { IconButton } from "../../components/icon-button.tsx";
import { countText } from "../../components/number-text.ts";
import { remainingMs, remainingText } from "../../components/progress-text.ts";
import { outcomeText } from "../devices/shared/execution-words.ts";
import { useWantedSelection } from "../devices/shared/wanted-selection.ts";
import { failedOf, jobTitle } from "./job-words.ts";

/** Executions in each answer of the server. */
const pageSize = 1_000;

/** What can be done with the devices of a job: the failed are selected in the list, the answers saved as a file. */
export function JobMenu({ job }: { readonly job: Job }) {
  const read = useAllExecutions(job);
  const [, setWanted] = useWantedSelection();
  const [, navigate] = useLocation();
  const selectFailed = (executions: readonly Execution[]) => {
    const failed = executions.filter(({ state }) => state === "failed" || state === "timed_out");
    setWanted(() => new Set(failed.map(({ device_id }) => device_id)));
    navigate("/devices");
  };
  const save = (executions: readonly Execution[]) =>
    saveCsv(`${jobTitle(job)}.csv`, csvOfExecutions(executions));
  return (
    <Menu position="bottom-end" width={200}>
      <Menu.Target>
        <IconButton label="More of the devices" tooltip="More">
          <EllipsisVertical size={16} />
        </IconButton>
      </Menu.Target>
      <Menu.Dropdown>
        <Menu.Item
          leftSection={<ListChecks size={16} />}
          disabled={failedOf(job) === 0}
          onClick={() => read("Select the failed", selectFailed)}
        >
          Select the failed
        </Menu.Item>
        <Menu.Item leftSection={<Download size={16} />} onClick={() => read("Answers as CSV", save)}>
          Answers as CSV
        </Menu.Item>
      </Menu.Dropdown>
    </Menu>
  );
}

/** The lines of a file with what became of each device. */
export function csvOfExecutions(executions: readonly Execution[]): readonly (readonly string[])[] {
  return [
    ["device", "state", "reason", "answer", "attempts", "ended"],
    ...executions.map((execution) => [
      execution.device_id,
      execution.state,
      execution.reason ?? "",
      outcomeText(execution),
      String(execution.attempts),
      execution.ended_at ?? "",
    ]),
  ];
}

/** Returns a function that reads all executions of a job, page by page, while other views are shown. */
function useAllExecutions({ id, devices }: Job) {
  const api = useApi();
  const [, update] = useBackgroundWork();
  return (title: string, use: (executions: readonly Execution[]) => void) => {
    const key = `executions ${performance.now()}`;
    const ending = new AbortController();
    const begun = performance.now();
    const show = (changes: Partial<BackgroundWork>) =>
      update((works) => works.map((work) => (work.key === key ? { ...work, ...changes } : work)));
    const close = () => update((works) => works.filter((work) => work.key !== key));
    const run = async () => {
      const all: Execution[] = [];
      for (let after: string | undefined | null; after !== null; ) {
        const query = { limit: pageSize, ...(after !== undefined && { after }) };
        const page = await api.exchange("listJobExecutions", {
          params: { id },
          query,
          signal: ending.signal,
        });
        all.push(...page.body);
        after = nextCursor(page.headers);
        const share = Math.min(1, all.length / Math.max(1, devices));
        const left = remainingText(remainingMs(performance.now() - begun, share));
        show({
          share,
          text: `${countText(all.length)} of ${countText(devices)} read${left === "" ? "" : `, ${left}`}`,
        });
      }
      close();
      use(all);
    };
    const fail = (error: unknown) =>
      ending.signal.aborted
        ? close()
        : show({ state: "failed", text: error instanceof Error ? error.message : String(error) });
    const cancel = () => ending.abort();
    update((works) => [...works, { key, title, state: "running", share: 0, text: "Being read", cancel }]);
    void run().catch(fail);
  };
}

import type { Firmware } from "@devmesh/contracts/model/firmware";
import { useQueryClient } from "@tanstack/react-query";
import { useApi } from "../../api/api-context.tsx";
import { queryKeys } from "../../api/query-keys.ts";
import { type BackgroundWork, useBackgroundWork } from "../../components/background-work.ts";
import { bytesText } from "../../components/number-text.ts";
import { remainingMs, remainingText } from "../../components/progress-text.ts";

/** How often the progress is shown, in milliseconds. */
const showMs = 200;

/** Key of the work that uploads the content of firmware. */
export function uploadKey({ id }: Pick<Firmware, "id">): string {
  return `upload ${id}`;
}

/** Returns a function that uploads content while other views are shown; a cancel removes the firmware. */
export function useUpload(): (firmware: Firmware, content: Blob) => void {
  const api = useApi();
  const queries = useQueryClient();
  const [, update] = useBackgroundWork();
  const upload = async (firmware: Firmware, content: Blob): Promise<void> => {
    const { id, name, version } = firmware;
    const key = uploadKey(firmware);
    const ending = new AbortController();
    const begun = performance.now();
    const show = (changes: Partial<BackgroundWork>) =>
      update((works) => works.map((work) => (work.key === key ? { ...work, ...changes } : work)));
    const work: BackgroundWork = {
      key,
      title: `Upload ${name} ${version}`,
      state: "running",
      share: 0,
      text: progressText(0, content.size, 0),
      cancel: () => ending.abort(),
    };
    update((works) => [...works.filter((other) => other.key !== key), work]);
    let shown = begun;
    const onSent = (sent: number) => {
      const now = performance.now();
      if (sent < content.size && now - shown < showMs) return;
      shown = now;
      show({ share: sent / content.size, text: progressText(sent, content.size, now - begun) });
    };
    try {
      await api.upload({ id, content, signal: ending.signal, onSent });
      show({ state: "done", share: 1, text: "It is stored, and devices can be updated to it." });
    } catch (error) {
      if (ending.signal.aborted) {
        show({ state: "cancelled", text: "Cancelled: nothing is kept." });
        await api.call("deleteFirmware", { params: { id } }).catch(() => undefined);
      } else
        show({
          state: "failed",
          text: error instanceof Error ? error.message : String(error),
          next: [{ label: "Try again", run: () => void upload(firmware, content) }],
        });
    }
    await queries.invalidateQueries({ queryKey: queryKeys.firmware });
  };
  return (firmware, content) => void upload(firmware, content);
}

/** "4.2 MB of 10 MB, about 12 s left". */
function progressText(sent: number, size: number, elapsedMs: number): string {
  if (sent >= size) return "All is sent; the server checks it.";
  const end = remainingText(remainingMs(elapsedMs, sent / size));
  return `${bytesText(sent)} of ${bytesText(size)}${end === "" ? "" : `, ${end}`}`;
}

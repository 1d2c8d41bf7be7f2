import type { ApiClient } from "../../../api/api-client.ts";
import { ApiProblem } from "../../../api/api-problem.ts";
import { labelsOf } from "./device-row.ts";

/** Changes of labels. */
export interface Labelling {
  readonly add: readonly string[];
  readonly remove: readonly string[];
}

/** Maximum of attempts while others write the same device. */
const attempts = 4;

/** Changes the labels of a device, and keeps concurrent changes of others. Returns its labels. */
export async function labelDevice(
  api: ApiClient,
  id: string,
  { add, remove }: Labelling,
  signal: AbortSignal,
): Promise<readonly string[]> {
  for (let attempt = 1; ; attempt += 1) {
    const { body, headers } = await api.exchange("readDevice", { params: { id }, signal });
    const before = labelsOf(body.shadow.tags);
    const labels = [...new Set([...before, ...add])].filter((label) => !remove.includes(label));
    if (labels.length === before.length && labels.every((label, at) => label === before[at])) return before;
    try {
      await api.call("patchDevice", {
        params: { id },
        body: { shadow: { tags: { labels } } },
        headers: { "If-Match": headers.get("ETag") ?? "*" },
        signal,
      });
      return labels;
    } catch (error) {
      if (attempt === attempts || !(error instanceof ApiProblem) || error.status !== 412) throw error;
    }
  }
}

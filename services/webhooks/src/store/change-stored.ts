import type { StoredWebhook, WebhookStore } from "./webhook-store.ts";

/**
 * Changes a webhook by compare-and-set, again where another writer was faster. Returns what is stored then; null where
 * there is none, or `change` gives null.
 */
export async function changeStored(
  store: Pick<WebhookStore, "find" | "change">,
  id: string,
  change: (webhook: StoredWebhook) => StoredWebhook | null,
  signal: AbortSignal,
): Promise<StoredWebhook | null> {
  for (;;) {
    const found = await store.find(id, signal);
    const wanted = found && change(found);
    if (found === null || wanted === null) return null;
    const changed = { ...wanted, revision: found.revision + 1 };
    if (await store.change(changed, signal)) return changed;
  }
}

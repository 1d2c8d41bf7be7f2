import type { Webhook } from "@devmesh/contracts/model/webhook";
import { Text } from "@mantine/core";
import { useApi } from "../../api/api-context.tsx";
import type { Column } from "../../components/data-table.tsx";
import { countText } from "../../components/number-text.ts";
import { RelativeTime } from "../../components/relative-time.tsx";
import { RowLink } from "../../components/row-link.tsx";
import { ShortListTab } from "../../components/short-list-tab.tsx";
import { StateBadge } from "../../components/state.tsx";
import { useWebhooks } from "./use-webhooks.ts";
import { CreateWebhook } from "./webhook-form.tsx";
import { webhookLook, webhookStateText, webhookTitle } from "./webhook-words.ts";

/** URLs that are sent what happens, and whether it arrives. */
export function WebhooksTab() {
  const api = useApi();
  const query = useWebhooks();
  return (
    <ShortListTab
      title="Webhooks"
      noun="webhook"
      query={query}
      filterPlaceholder="Name, URL or event"
      textsOf={textsOfWebhook}
      none="A webhook is a URL that is sent what happens, as signed CloudEvents."
      columns={columns}
      minWidth={900}
      removal={{
        action: "Delete",
        label: (webhook) => `Delete the webhook ${webhookTitle(webhook)}`,
        consequence: () => "What waits for it and what was given up is dropped.",
        run: ({ id }) => api.call("deleteWebhook", { params: { id } }),
      }}
      creation="New webhook"
      creationDialog={(onClose) => <CreateWebhook onClose={onClose} />}
    />
  );
}

/** What the filter of the list searches. */
function textsOfWebhook({ id, name, url, events }: Webhook): readonly (string | null)[] {
  return [id, name, url, ...events];
}

const columns: readonly Column<Webhook>[] = [
  {
    heading: "Webhook",
    namesRow: true,
    cell: (webhook) => (
      <>
        <RowLink href={`/webhooks/${webhook.id}`}>{webhookTitle(webhook)}</RowLink>
        {webhook.name !== null && (
          <Text size="xs" c="dimmed" style={{ overflowWrap: "anywhere" }}>
            {webhook.url}
          </Text>
        )}
      </>
    ),
  },
  {
    heading: "State",
    cell: (webhook) => <StateBadge look={webhookLook(webhook)}>{webhookStateText(webhook)}</StateBadge>,
  },
  {
    heading: "Events",
    cell: ({ events }) => (
      <Text size="xs" ff="monospace" lineClamp={2} style={{ overflowWrap: "anywhere" }}>
        {events.join(", ") || "alerts alone"}
      </Text>
    ),
  },
  {
    heading: "Waiting",
    style: { ta: "end" },
    cell: ({ state: { waiting } }) => (waiting === null ? "–" : countText(waiting)),
  },
  {
    heading: "Given up",
    style: { ta: "end" },
    cell: ({ state: { dead } }) => (dead === null ? "–" : countText(dead)),
  },
  {
    heading: "Last success",
    cell: ({ state: { last_success_at } }) => <RelativeTime at={last_success_at} />,
  },
  {
    heading: "Last failure",
    cell: ({ state: { last_failure } }) =>
      last_failure === null ? (
        "never"
      ) : (
        <>
          <RelativeTime at={last_failure.at} />
          <Text size="xs" c="dimmed" lineClamp={2} style={{ overflowWrap: "anywhere" }}>
            {last_failure.error}
          </Text>
        </>
      ),
  },
];

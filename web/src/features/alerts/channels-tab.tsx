import type { AlertChannel } from "@devmesh/contracts/model/rule";
import { Group, Text } from "@mantine/core";
import { useMutation } from "@tanstack/react-query";
import { Pencil, Send } from "lucide-react";
import { useState } from "react";
import { useApi } from "../../api/api-context.tsx";
import type { Column } from "../../components/data-table.tsx";
import { Failure } from "../../components/failure.tsx";
import { IconButton } from "../../components/icon-button.tsx";
import { RelativeTime } from "../../components/relative-time.tsx";
import { ShortListTab } from "../../components/short-list-tab.tsx";
import { Tag } from "../../components/state.tsx";
import { showToast } from "../../components/toast.tsx";
import { useWebhooks } from "../webhooks/use-webhooks.ts";
import { AlertsParts } from "./alerts-parts.tsx";
import { ChannelForm } from "./channel-form.tsx";
import { channelLabel, channelText } from "./channel-kinds.ts";
import { useChannels, useRules } from "./use-alerts.ts";

/** Where alerts are sent. */
export function ChannelsTab() {
  const api = useApi();
  const query = useChannels();
  const { data: rules = [] } = useRules();
  const { data: webhooks = [] } = useWebhooks();
  const [changed, setChanged] = useState<AlertChannel | null>(null);
  const testing = useMutation({
    mutationFn: ({ id }: AlertChannel) => api.call("testChannel", { params: { id } }),
    onSuccess: (_, { name }) =>
      showToast({ title: `A test is sent to ${name}`, text: "It says that it is a test." }),
  });
  const columns: readonly Column<AlertChannel>[] = [
    {
      heading: "Name",
      namesRow: true,
      cell: ({ name }) => (
        <Text size="sm" fw={500} lineClamp={2}>
          {name}
        </Text>
      ),
    },
    { heading: "Kind", cell: (channel) => <Tag>{channelLabel(channel)}</Tag> },
    {
      heading: "To",
      cell: (channel) => (
        <Text size="sm" style={{ overflowWrap: "anywhere" }}>
          {channelText(channel, webhooks)}
        </Text>
      ),
    },
    { heading: "Created", cell: ({ created_at }) => <RelativeTime at={created_at} /> },
    {
      heading: "Test and change",
      hidesHeading: true,
      style: { ta: "end" },
      cell: (channel) => (
        <Group gap={4} justify="flex-end" wrap="nowrap" component="span">
          <IconButton
            label={`Send a test to ${channel.name}`}
            tooltip="Send a test"
            loading={testing.isPending && testing.variables.id === channel.id}
            onClick={() => testing.mutate(channel)}
          >
            <Send size={16} />
          </IconButton>
          <IconButton
            label={`Change the channel ${channel.name}`}
            tooltip="Change"
            onClick={() => setChanged(channel)}
          >
            <Pencil size={16} />
          </IconButton>
        </Group>
      ),
    },
  ];
  return (
    <>
      <ShortListTab
        heading="Alerts"
        title="Channels"
        noun="channel"
        tabs={<AlertsParts current="/alerts/channels" />}
        query={query}
        filterPlaceholder="Name or address"
        textsOf={textsOfChannel}
        none="Alerts of rules that notify a channel are sent to it."
        columns={columns}
        minWidth={720}
        removal={{
          action: "Delete",
          label: ({ name }) => `Delete the channel ${name}`,
          blockedBy: ({ id }) => {
            const rule = rules.find(({ notify }) => notify.includes(id));
            return rule && `The rule ${rule.name} notifies it`;
          },
          consequence: () => "What it was not sent yet is dropped.",
          run: ({ id }) => api.call("deleteChannel", { params: { id } }),
        }}
        after={<Failure error={testing.error} title="The test was not sent" />}
        creation="New channel"
        creationDialog={(onClose) => <ChannelForm stored={null} onClose={onClose} />}
      />
      {changed !== null && <ChannelForm stored={changed} onClose={() => setChanged(null)} />}
    </>
  );
}

/** What the filter of the list searches. */
function textsOfChannel(channel: AlertChannel): readonly (string | null)[] {
  return [channel.name, channelText(channel, [])];
}

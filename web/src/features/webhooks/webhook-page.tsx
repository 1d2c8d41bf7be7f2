import type { Webhook } from "@devmesh/contracts/model/webhook";
import { Alert, Button, Group, Stack, Text } from "@mantine/core";
import { useMutation } from "@tanstack/react-query";
import { Send } from "lucide-react";
import { useState } from "react";
import { Link, useLocation, useParams } from "wouter";
import { useApi } from "../../api/api-context.tsx";
import { ApiProblem } from "../../api/api-problem.ts";
import { Card } from "../../components/card.tsx";
import { Columns } from "../../components/columns.tsx";
import { Confirmation } from "../../components/confirmation.tsx";
import { EmptyState } from "../../components/empty-state.tsx";
import { Fact, Facts } from "../../components/fact.tsx";
import { Failure } from "../../components/failure.tsx";
import { countText } from "../../components/number-text.ts";
import { Page } from "../../components/page.tsx";
import { RelativeTime } from "../../components/relative-time.tsx";
import { Secret } from "../../components/secret.tsx";
import { Stat, StatStrip } from "../../components/stat-strip.tsx";
import { StateBadge } from "../../components/state.tsx";
import { Waiting } from "../../components/waiting.tsx";
import { DeadLetters } from "./dead-letters.tsx";
import { sendsRecords } from "./typed-webhook.ts";
import { useWebhook, useWebhooksAgain } from "./use-webhooks.ts";
import { ChangeWebhook } from "./webhook-form.tsx";
import { testText, webhookLook, webhookStateText, webhookTitle } from "./webhook-words.ts";

/** One webhook: whether it delivers, what it sends, its secret, and what it gave up. */
export function WebhookPage() {
  const { id = "" } = useParams<{ id: string }>();
  const [, navigate] = useLocation();
  const { data: webhook, error, isPending, refetch } = useWebhook(id);
  const gone = error instanceof ApiProblem && error.status === 404;
  return (
    <Page
      title={webhook === undefined ? "Webhook" : webhookTitle(webhook)}
      above={<Link href="/webhooks">Webhooks</Link>}
      state={
        webhook !== undefined && (
          <StateBadge look={webhookLook(webhook)}>{webhookStateText(webhook)}</StateBadge>
        )
      }
      below={
        webhook !== undefined && (
          <Text span size="xs" ff="monospace" c="var(--text-2)" style={{ overflowWrap: "anywhere" }}>
            {webhook.url}
          </Text>
        )
      }
      actions={webhook !== undefined && !gone && <Actions webhook={webhook} />}
    >
      {gone ? (
        <div role="alert">
          <EmptyState
            title="There is no such webhook"
            next="All webhooks"
            onNext={() => navigate("/webhooks")}
          />
        </div>
      ) : (
        <Failure error={error} title="The webhook could not be read" onRetry={() => void refetch()} />
      )}
      {isPending && <Waiting />}
      {webhook !== undefined && !gone && <Content key={id} webhook={webhook} />}
    </Page>
  );
}

/** What can be done with a webhook. */
function Actions({ webhook }: { readonly webhook: Webhook }) {
  const { id, enabled } = webhook;
  const api = useApi();
  const readAgain = useWebhooksAgain();
  const [, navigate] = useLocation();
  const [opened, setOpened] = useState<"change" | "disable" | "delete" | null>(null);
  const close = () => setOpened(null);
  const set = async (changed: boolean) => {
    await api.call("patchWebhook", { params: { id }, body: { enabled: changed } });
    await readAgain();
  };
  const enabling = useMutation({ mutationFn: () => set(true) });
  return (
    <>
      <Failure error={enabling.error} title="The webhook was not enabled" />
      <Button variant="default" onClick={() => setOpened("change")}>
        Change
      </Button>
      {enabled ? (
        <Button variant="default" onClick={() => setOpened("disable")}>
          Disable
        </Button>
      ) : (
        <Button loading={enabling.isPending} onClick={() => enabling.mutate()}>
          Enable
        </Button>
      )}
      <Button variant="default" data-danger onClick={() => setOpened("delete")}>
        Delete
      </Button>
      {opened === "change" && <ChangeWebhook webhook={webhook} onClose={close} />}
      {opened === "disable" && (
        <Confirmation title="Disable the webhook?" action="Disable" run={() => set(false)} onClose={close}>
          What waits for it is dropped. Enabled again, it gets what happens from then on.
        </Confirmation>
      )}
      {opened === "delete" && (
        <Confirmation
          title="Delete the webhook?"
          action="Delete the webhook"
          run={async () => {
            await api.call("deleteWebhook", { params: { id } });
            navigate("/webhooks");
          }}
          onClose={close}
        >
          What waits for it and what was given up is dropped.
        </Confirmation>
      )}
    </>
  );
}

function Content({ webhook }: { readonly webhook: Webhook }) {
  const { state, enabled, disabled_because } = webhook;
  return (
    <>
      {!enabled && disabled_because !== "by_hand" && (
        <Alert color="red" title="The webhook gets nothing">
          {disabled_because === "gone"
            ? "Its receiver answered 410, which says that it is gone for good."
            : "Its receiver took nothing for three days."}{" "}
          Enabled again, it gets what happens from then on.
        </Alert>
      )}
      <StatStrip label="Deliveries">
        <Stat
          term="Waiting"
          value={state.waiting === null ? "–" : countText(state.waiting)}
          aside={state.oldest !== null && <RelativeTime at={state.oldest} />}
        />
        <Stat
          term="Given up"
          value={state.dead === null ? "–" : countText(state.dead)}
          state={(state.dead ?? 0) > 0 ? "bad" : undefined}
        />
        <Stat term="Last success" value={<RelativeTime at={state.last_success_at} />} />
        <Stat term="Last failure" value={<RelativeTime at={state.last_failure?.at ?? null} />} />
      </StatStrip>
      <Columns>
        <div>
          <DeadLetters webhook={webhook} />
        </div>
        <div>
          <Test webhook={webhook} />
          <Sent webhook={webhook} />
          <SecretCard webhook={webhook} />
        </div>
      </Columns>
    </>
  );
}

/** Sends an event and says what became of it. */
function Test({ webhook: { id } }: { readonly webhook: Webhook }) {
  const api = useApi();
  const readAgain = useWebhooksAgain();
  const testing = useMutation({
    mutationFn: () => api.call("testWebhook", { params: { id } }),
    onSettled: readAgain,
  });
  return (
    <Card title="Test">
      <Text size="sm" c="dimmed">
        An event devmesh.test is sent once, also by a webhook that is disabled.
      </Text>
      <div role="status">
        {testing.data !== undefined && (
          <Alert color={testing.data.error === null ? "teal" : "red"}>{testText(testing.data)}</Alert>
        )}
      </div>
      <Failure error={testing.error} title="The test was not sent" />
      <Group justify="flex-end">
        <Button
          variant="default"
          leftSection={<Send size={16} />}
          loading={testing.isPending}
          onClick={() => testing.mutate()}
        >
          Send a test
        </Button>
      </Group>
    </Card>
  );
}

/** What is sent. */
function Sent({ webhook }: { readonly webhook: Webhook }) {
  const { events, devices, labels, records, created_at, state } = webhook;
  return (
    <Card title="What is sent">
      <Facts>
        <Fact term="Events">{events.join(", ") || "alerts alone"}</Fact>
        {devices !== null && <Fact term="Only of">{devices.join(", ")}</Fact>}
        {labels !== null && <Fact term="Only labelled">{labels.join(" or ")}</Fact>}
        {sendsRecords(webhook) && (
          <Fact term="Records">
            {countText(records.batch)} in a request, after {countText(records.wait_ms)} ms
          </Fact>
        )}
        {state.last_failure !== null && (
          <Fact term="Last failure">
            {state.last_failure.error}, <RelativeTime at={state.last_failure.at} />
          </Fact>
        )}
        {state.failing_since !== null && (
          <Fact term="Failing since">
            <RelativeTime at={state.failing_since} />
          </Fact>
        )}
        <Fact term="Created">
          <RelativeTime at={created_at} />
        </Fact>
      </Facts>
    </Card>
  );
}

/** The secret, which is read when it is asked for, and can be replaced. */
function SecretCard({ webhook: { id } }: { readonly webhook: Webhook }) {
  const api = useApi();
  const [replacing, setReplacing] = useState(false);
  const reading = useMutation({ mutationFn: () => api.call("readWebhookSecret", { params: { id } }) });
  const replacement = useMutation({
    mutationFn: () => api.call("rotateWebhookSecret", { params: { id } }),
  });
  const secret = replacement.data ?? reading.data;
  return (
    <Card title="Secret">
      <Stack gap="sm">
        {secret === undefined ? (
          <Text size="sm" c="dimmed">
            The receiver verifies the signature of requests with it.
          </Text>
        ) : (
          <Secret secret={secret.secret} what="the secret" />
        )}
        {replacement.data !== undefined && (
          <Text size="sm" role="status">
            The secret is replaced. The former one also signs for 24 h.
          </Text>
        )}
        <Failure error={reading.error} title="The secret could not be read" />
        <Group justify="flex-end" gap="sm">
          <Button variant="default" onClick={() => setReplacing(true)}>
            Replace
          </Button>
          {secret === undefined && (
            <Button variant="default" loading={reading.isPending} onClick={() => reading.mutate()}>
              Show
            </Button>
          )}
        </Group>
      </Stack>
      {replacing && (
        <Confirmation
          title="Replace the secret?"
          action="Replace the secret"
          run={() => replacement.mutateAsync()}
          onClose={() => setReplacing(false)}
        >
          Requests carry the signatures of both for 24 h. Give the receiver the new one by then.
        </Confirmation>
      )}
    </Card>
  );
}

import { AlertRule, type RuleInput, Severity } from "@devmesh/contracts/model/rule";
import {
  Button,
  Checkbox,
  Group,
  NativeSelect,
  Stack,
  Switch,
  Text,
  Textarea,
  TextInput,
} from "@mantine/core";
import { useMutation, useQueryClient } from "@tanstack/react-query";
import { Link, useLocation, useParams } from "wouter";
import { useApi } from "../../api/api-context.tsx";
import { ApiProblem } from "../../api/api-problem.ts";
import { queryKeys } from "../../api/query-keys.ts";
import { Card } from "../../components/card.tsx";
import { Columns } from "../../components/columns.tsx";
import { EmptyState } from "../../components/empty-state.tsx";
import { Failure } from "../../components/failure.tsx";
import { Page } from "../../components/page.tsx";
import { showToast } from "../../components/toast.tsx";
import { useCheckedForm } from "../../components/use-checked-form.ts";
import { Waiting } from "../../components/waiting.tsx";
import { useWebhooks } from "../webhooks/use-webhooks.ts";
import styles from "./alerts.module.css";
import { channelText } from "./channel-kinds.ts";
import { ConditionFields } from "./condition-fields.tsx";
import { conditionKinds, hasOrder } from "./condition-kinds.ts";
import { Trial } from "./rule-trial.tsx";
import { emptyRule, readRule, ruleAsTyped, ruleField, ruleSentence, type TypedRule } from "./typed-rule.ts";
import { useChannels, useRule } from "./use-alerts.ts";

/** A rule as a sentence: a new one, or a stored one that is changed. */
export function RulePage() {
  const { id = "" } = useParams<{ id: string }>();
  const isNew = id === "new";
  const { data: rule, error, refetch } = useRule(id, { enabled: !isNew });
  const [, navigate] = useLocation();
  const gone = error instanceof ApiProblem && error.status === 404;
  const typed = rule && ruleAsTyped(rule);
  return (
    <Page title={isNew ? "New rule" : (rule?.name ?? "Rule")} above={<Link href="/alerts/rules">Rules</Link>}>
      {gone ? (
        <div role="alert">
          <EmptyState
            title="There is no such rule"
            next="All rules"
            onNext={() => navigate("/alerts/rules")}
          />
        </div>
      ) : (
        <Failure error={error} title="The rule could not be read" onRetry={() => void refetch()} />
      )}
      {!isNew && rule === undefined && error === null && <Waiting />}
      {isNew && <RuleEditor key="new" stored={null} initial={emptyRule} />}
      {rule !== undefined && !gone && typed === null && (
        <Card title="Rule">
          <Text size="sm">{ruleSentence(rule)}.</Text>
          <Text size="sm" c="dimmed">
            Rules of this kind can only be changed by the API.
          </Text>
        </Card>
      )}
      {rule !== undefined && !gone && typed && <RuleEditor key={id} stored={rule} initial={typed} />}
    </Page>
  );
}

interface RuleEditorProps {
  /** Null for a new rule. */
  readonly stored: AlertRule | null;
  readonly initial: TypedRule;
}

function RuleEditor({ stored, initial }: RuleEditorProps) {
  const api = useApi();
  const queries = useQueryClient();
  const [, navigate] = useLocation();
  const { data: channels, error: channelsError, refetch } = useChannels();
  const { data: webhooks = [] } = useWebhooks();
  const trying = useMutation({
    mutationFn: async (rule: RuleInput) => ({
      of: triedPart(rule),
      when: rule.when,
      trial: await api.call("tryRule", { query: { over: "P7D" }, body: rule }),
    }),
  });
  const saving = useMutation({
    mutationFn: async (rule: RuleInput) =>
      AlertRule.parse(
        stored === null
          ? await api.call("createRule", { body: rule })
          : await api.call("changeRule", { params: { id: stored.id }, body: rule }),
      ),
    async onSuccess(rule) {
      queries.setQueryData(queryKeys.rule(rule.id), rule);
      await queries.invalidateQueries({ queryKey: queryKeys.rules, exact: true });
      showToast({ title: `${rule.name} is saved` });
      navigate("/alerts/rules");
    },
  });
  const { form, values, body, isRefused, field, submit } = useCheckedForm({
    initialValues: initial,
    read: readRule,
    fieldOf: ruleField,
    error: saving.error ?? trying.error,
  });
  const tried = body === null ? "" : triedPart(body);
  const trial = trying.data !== undefined && trying.data.of === tried ? trying.data : null;
  const isStored = stored !== null && tried === triedPart(stored);
  // A trial that fails, such as by a service that is away, does not keep anybody from saving.
  const maySave = trial !== null || isStored || (trying.error !== null && isRefused);
  const fieldOf = (name: keyof TypedRule) => field(name, { eager: values[name].toString() !== "" });
  const { kind } = values;
  const { past } = conditionKinds[kind];
  return (
    <Columns>
      <div>
        <Card title="Sentence">
          <div className={styles.sentence}>
            <ConditionFields values={values} field={fieldOf} />
            <span>on devices with</span>
            <TextInput
              aria-label="Devices"
              placeholder="anything: all devices"
              w={220}
              autoComplete="off"
              spellCheck={false}
              {...fieldOf("where")}
            />
            <span>as</span>
            <NativeSelect aria-label="Severity" data={[...Severity.options]} {...fieldOf("severity")} />
          </div>
          <Text size="xs" c="dimmed">
            Devices are given as in their list, such as label:freezer. Times such as 90 s, 5 min, 2 h.
            {hints[kind]}
          </Text>
          {kind === "value" && hasOrder(values.is) && (
            <TextInput
              label="It ends only beyond"
              description="So that a value near the limit does not fire again and again. Optional."
              w={260}
              autoComplete="off"
              {...fieldOf("clear_at")}
            />
          )}
          <p className={styles.said} role="status">
            {body === null ? "The sentence is not complete." : `${ruleSentence(body)}.`}
          </p>
        </Card>
        <Card title="Who is notified">
          <Failure
            error={channelsError}
            title="The channels could not be read"
            onRetry={() => void refetch()}
          />
          {channels?.length === 0 && (
            <Text size="sm">
              There is no channel yet: <Link href="/alerts/channels">create one</Link>. Without one the alert
              is shown here alone.
            </Text>
          )}
          {channels !== undefined && channels.length > 0 && (
            <Checkbox.Group aria-label="Channels" {...fieldOf("notify")} value={[...values.notify]}>
              <Stack gap="xs">
                {channels.map((channel) => (
                  <Checkbox
                    key={channel.id}
                    value={channel.id}
                    label={channel.name}
                    description={channelText(channel, webhooks)}
                  />
                ))}
              </Stack>
            </Checkbox.Group>
          )}
          <TextInput
            label="Sent again after"
            description="As long as it fires and nobody has acknowledged it. Optional."
            placeholder="never"
            w={260}
            autoComplete="off"
            {...fieldOf("repeat")}
          />
          <Textarea
            label="Note"
            description="What to do about it. It is part of each message."
            maxLength={1_000}
            autosize
            minRows={2}
            maxRows={8}
            {...fieldOf("note")}
          />
        </Card>
        <Card title="Rule">
          <TextInput
            label="Name"
            description="For people. Left empty, it is the condition."
            maxLength={128}
            autoComplete="off"
            {...fieldOf("name")}
          />
          <Switch
            label="Enabled"
            description="A rule that is not enabled does nothing."
            {...form.getInputProps("enabled", { type: "checkbox" })}
          />
        </Card>
      </div>
      <div>
        <Card title={past === null ? "Now" : `The last ${past}`}>
          <Stack gap="sm" role="status">
            {trial === null ? (
              <Text size="sm" c="dimmed">
                {isStored
                  ? "A trial shows what the rule would have done, and stores nothing."
                  : "A trial shows what the rule would have done, and stores nothing. The rule can be saved once it was seen."}
              </Text>
            ) : (
              <Trial trial={trial.trial} when={trial.when} past={past} />
            )}
          </Stack>
          <Failure
            error={isRefused ? (saving.error ?? trying.error) : null}
            title={saving.error === null ? "The rule could not be tried" : "The rule was not saved"}
          />
          <Group gap="sm" justify="flex-end">
            <Button
              variant="default"
              loading={trying.isPending}
              onClick={() => {
                saving.reset();
                submit(trying.mutate);
              }}
            >
              Try
            </Button>
            <Button
              disabled={body === null || !maySave}
              loading={saving.isPending}
              onClick={() => submit(saving.mutate)}
            >
              Save
            </Button>
          </Group>
        </Card>
      </div>
    </Columns>
  );
}

/** What has to be known about the fields of a kind of condition. */
const hints: Partial<Record<TypedRule["kind"], string>> = {
  value: " A pointer such as /celsius leads into a message that is JSON.",
  shadow: " A pointer begins with /state/desired, /state/reported, /state/delta or /tags.",
  event: " Events are named as in the log of a device; rpc.out.alarm is the event alarm.",
};

/** What a trial depends on, as text. */
function triedPart({ when, where, for: time }: Pick<AlertRule, "when" | "where" | "for">): string {
  return JSON.stringify([when, where, time]);
}

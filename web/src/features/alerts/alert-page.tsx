import { type Alert, meshRuleId } from "@devmesh/contracts/model/alert";
import { Button, Group, Text, Textarea } from "@mantine/core";
import { useForm } from "@mantine/form";
import { BellOff, Check } from "lucide-react";
import { useEffect, useEffectEvent, useMemo, useState } from "react";
import { Link, useLocation, useParams } from "wouter";
import { useApi } from "../../api/api-context.tsx";
import { ApiProblem } from "../../api/api-problem.ts";
import { queryKeys } from "../../api/query-keys.ts";
import { serverNow } from "../../api/server-clock.ts";
import { useReading } from "../../api/use-reading.ts";
import { Card } from "../../components/card.tsx";
import { Columns } from "../../components/columns.tsx";
import { EmptyState } from "../../components/empty-state.tsx";
import { Fact, Facts } from "../../components/fact.tsx";
import { Failure } from "../../components/failure.tsx";
import { countText } from "../../components/number-text.ts";
import { Page } from "../../components/page.tsx";
import { RelativeTime } from "../../components/relative-time.tsx";
import { shortId } from "../../components/short-id.ts";
import { Stat, StatStrip } from "../../components/stat-strip.tsx";
import { StateBadge } from "../../components/state.tsx";
import { dateTimeText, longSpan } from "../../components/time-in-words.ts";
import { Waiting } from "../../components/waiting.tsx";
import { Acknowledge } from "./acknowledge.tsx";
import { alertLook, alertStateText, alertValueText, clearedText, severityLooks } from "./alert-words.ts";
import { subjectOf } from "./condition-kinds.ts";
import { CreateSilence } from "./create-silence.tsx";
import { LimitChart } from "./limit-chart.tsx";
import { ruleSentence } from "./typed-rule.ts";
import { useAlert, useAlertChange, useRule } from "./use-alerts.ts";

/** One alert: its device and value, its rule, what happened, and the note on it. */
export function AlertPage() {
  const { id = "" } = useParams<{ id: string }>();
  const [, navigate] = useLocation();
  const { data: alert, error, isPending, refetch } = useAlert(id);
  const [opened, setOpened] = useState<"acknowledge" | "silence" | null>(null);
  const close = () => setOpened(null);
  const gone = error instanceof ApiProblem && error.status === 404;
  return (
    <Page
      title={alert?.rule_name ?? "Alert"}
      above={<Link href="/alerts">Alerts</Link>}
      state={alert !== undefined && <StateBadge look={alertLook(alert)}>{alertStateText(alert)}</StateBadge>}
      below={
        alert !== undefined &&
        alert.device_id !== null && (
          <Text component={Link} href={`/devices/${alert.device_id}`} size="xs" ff="monospace">
            {alert.device_id}
          </Text>
        )
      }
      actions={
        alert?.state === "firing" && (
          <>
            {alert.rule_id !== meshRuleId && (
              <Button
                variant="default"
                leftSection={<BellOff size={16} />}
                onClick={() => setOpened("silence")}
              >
                Silence
              </Button>
            )}
            {alert.acknowledged_at === null && (
              <Button leftSection={<Check size={16} />} onClick={() => setOpened("acknowledge")}>
                Acknowledge
              </Button>
            )}
          </>
        )
      }
    >
      {gone ? (
        <div role="alert">
          <EmptyState title="There is no such alert" next="All alerts" onNext={() => navigate("/alerts")}>
            Alerts are kept for 90 days after they cleared.
          </EmptyState>
        </div>
      ) : (
        <Failure error={error} title="The alert could not be read" onRetry={() => void refetch()} />
      )}
      {isPending && <Waiting />}
      {alert !== undefined && !gone && <Content key={id} alert={alert} />}
      {opened === "acknowledge" && alert !== undefined && <Acknowledge alerts={[alert]} onClose={close} />}
      {opened === "silence" && alert !== undefined && (
        <CreateSilence
          initial={{ where: alert.device_id ?? "", rule_ids: [alert.rule_id] }}
          onClose={close}
        />
      )}
    </Page>
  );
}

function Content({ alert }: { readonly alert: Alert }) {
  const { severity, value, since, fired_at, cleared_at, flaps } = alert;
  const end = cleared_at === null ? serverNow() : Date.parse(cleared_at);
  const heldMs = Math.max(0, end - Date.parse(since));
  return (
    <>
      <StatStrip label="The alert">
        <Stat term="Severity" value={<StateBadge look={severityLooks[severity]}>{severity}</StateBadge>} />
        <Stat term="Value" value={alertValueText(value) || "–"} />
        <Stat term={cleared_at === null ? "Holds for" : "Held for"} value={longSpan(heldMs)} />
        <Stat term="Fired again" value={countText(flaps)} unit={flaps === 1 ? "time" : "times"} />
      </StatStrip>
      <Columns>
        <div>
          <CourseCard alert={alert} />
          <RuleCard alert={alert} />
          <Note alert={alert} />
        </div>
        <div>
          <Card title="What happened">
            <Facts>
              <Fact term="Holds since">
                <Moment at={since} />
              </Fact>
              <Fact term="Fired">
                <Moment at={fired_at} />
              </Fact>
              {alert.acknowledged_at !== null && (
                <Fact term="Acknowledged">
                  <Moment at={alert.acknowledged_at} /> by <KeyName id={alert.acknowledged_by} />
                </Fact>
              )}
              {cleared_at !== null && (
                <Fact term="Cleared">
                  <Moment at={cleared_at} />: {clearedText(alert)}
                </Fact>
              )}
            </Facts>
          </Card>
        </div>
      </Columns>
    </>
  );
}

/** Milliseconds before and after an alert that its chart shows at least. */
const aroundMs = 1_800_000;

/** The value that the rule looks at, before and while it held; nothing for a rule on something else. */
function CourseCard({ alert: { device_id, rule_id, since, cleared_at } }: { readonly alert: Alert }) {
  const { data: rule } = useRule(rule_id);
  const chart = useMemo(() => {
    const begin = Date.parse(since);
    const end = cleared_at === null ? null : Date.parse(cleared_at);
    const around = end === null ? aroundMs : Math.max(aroundMs, end - begin);
    return {
      from: begin - around,
      until: end === null ? null : end + around,
      held: [{ from: begin, to: end ?? Number.MAX_SAFE_INTEGER }],
    };
  }, [since, cleared_at]);
  if (rule?.when.kind !== "value" || device_id === null) return null;
  return (
    <Card title={subjectOf(rule.when)}>
      <LimitChart device={device_id} when={rule.when} {...chart} />
    </Card>
  );
}

/** A time with its age. */
function Moment({ at }: { readonly at: string }) {
  return (
    <>
      {dateTimeText(at)}, <RelativeTime at={at} />
    </>
  );
}

/** Who has the key or the session of an id, as far as it is known. */
function KeyName({ id }: { readonly id: string | null }) {
  const api = useApi();
  const { data: keys } = useReading({
    queryKey: queryKeys.keys,
    queryFn: ({ signal }) => api.call("listKeys", { signal }),
  });
  const { data: sessions } = useReading({
    queryKey: queryKeys.sessions,
    queryFn: ({ signal }) => api.call("listSessions", { signal }),
  });
  if (id === null) return "a key that is unknown";
  const keyId = sessions?.find((session) => session.id === id)?.master_key_id ?? id;
  return keys?.find((key) => key.id === keyId)?.name ?? `the key ${shortId(keyId)}`;
}

function RuleCard({ alert: { rule_id } }: { readonly alert: Alert }) {
  const { data: rule, error, refetch } = useRule(rule_id);
  const gone = error instanceof ApiProblem && error.status === 404;
  return (
    <Card title="Rule">
      {gone ? (
        <Text size="sm" c="dimmed">
          The rule was deleted.
        </Text>
      ) : (
        <Failure error={error} title="The rule could not be read" onRetry={() => void refetch()} />
      )}
      {rule !== undefined && !gone && (
        <>
          <Text size="sm" style={{ overflowWrap: "anywhere" }}>
            {ruleSentence(rule)}.
          </Text>
          {rule.note !== null && (
            <Text size="sm" c="dimmed" style={{ whiteSpace: "pre-line", overflowWrap: "anywhere" }}>
              {rule.note}
            </Text>
          )}
          <Text component={Link} href={`/alerts/rules/${rule_id}`} size="sm">
            Open the rule
          </Text>
        </>
      )}
    </Card>
  );
}

/** What somebody wrote on the alert. */
function Note({ alert: { id, note } }: { readonly alert: Alert }) {
  const form = useForm({ initialValues: { note: note ?? "" } });
  const { isDirty, setValues, resetDirty } = form;
  const show = useEffectEvent((written: string) => {
    // What is being edited stays.
    if (isDirty()) return;
    setValues({ note: written });
    resetDirty({ note: written });
  });
  useEffect(() => show(note ?? ""), [note]);
  const change = useAlertChange({ onSuccess: () => form.resetDirty() });
  return (
    <Card title="Note">
      <form
        onSubmit={form.onSubmit((values) => change.mutate({ ids: [id], note: values.note.trim() || null }))}
      >
        <Textarea
          aria-label="Note on the alert"
          placeholder="What was found, what was done"
          maxLength={1_000}
          autosize
          minRows={3}
          maxRows={12}
          {...form.getInputProps("note")}
        />
        <Group justify="flex-end" mt="sm">
          <Button type="submit" variant="default" disabled={!form.isDirty()} loading={change.isPending}>
            Save the note
          </Button>
        </Group>
      </form>
      <Failure error={change.error} title="The note was not saved" />
    </Card>
  );
}

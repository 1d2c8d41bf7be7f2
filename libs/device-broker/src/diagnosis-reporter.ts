import { redactSecrets } from "@devmesh/contracts/model/api-key";
import { type DiagnosisReport, diagnosisLengths } from "@devmesh/contracts/model/diagnostics";
import { visibleText } from "@devmesh/contracts/model/visible-text";
import type { Clock } from "@devmesh/service-kit/clock";

/** How long reports are collected, in milliseconds: at most four messages a second, whatever happens. */
const collectMs = 250;

/** Different reports in one message, below `max_payload`; further ones are dropped. */
const maxReports = 400;
/** Of these, about ids that are no device: they must not displace the others. */
const maxUnknownReports = 100;

/** Different topics of one device, name and reason in one message; further ones are reported without their topic. */
const maxTopics = 16;

/** Longest text that is searched for secrets, in characters: a client id has up to 64 KB. */
const maxSearched = 1_024;

/** What happened; what is left out is null. */
export type Finding = Pick<DiagnosisReport, "id" | "name" | "reason"> &
  Partial<Pick<DiagnosisReport, "registered" | "address" | "client_id" | "topic" | "detail">>;

/** Takes what happened to a device. It costs no further message and never throws. */
export type ReportDiagnosis = (finding: Finding) => void;

interface ReporterOptions {
  readonly clock: Pick<Clock, "now" | "schedule">;
  /** Publishes the live event `diagnostics`. */
  readonly publish: (event: { readonly reports: DiagnosisReport[] }) => void;
}

/** Collects reports for the owner of the diagnostics. Those of one id, name, reason and topic are one, with a count. */
export function createDiagnosisReporter({ clock, publish }: ReporterOptions): ReportDiagnosis {
  const pending = new Map<string, DiagnosisReport>();
  /** How many topics are pending of each id, name and reason. */
  const topics = new Map<string, number>();

  function flush(): void {
    const reports = [...pending.values()];
    pending.clear();
    topics.clear();
    publish({ reports });
  }

  return ({ registered = true, address = null, client_id = null, topic = null, detail = null, ...what }) => {
    const { name, reason } = what;
    const shownId = displayable(what.id, diagnosisLengths.id);
    const kind = JSON.stringify([shownId, name, reason]);
    const ofKind = topics.get(kind) ?? 0;
    const named = topic === null ? null : displayable(topic, diagnosisLengths.topic);
    const isNamed = named !== null && (ofKind < maxTopics || pending.has(kind + named));
    const key = isNamed ? kind + named : kind;
    const before = pending.get(key);
    if (before === undefined && pending.size >= (registered === true ? maxReports : maxUnknownReports))
      return;
    if (before === undefined && isNamed) topics.set(kind, ofKind + 1);
    if (pending.size === 0) clock.schedule(collectMs, flush);
    pending.set(key, {
      id: shownId,
      name,
      reason,
      registered,
      address,
      client_id: client_id === null ? null : displayable(client_id, diagnosisLengths.client_id),
      topic: isNamed ? named : null,
      detail: detail === null ? null : displayable(detail, diagnosisLengths.detail),
      count: (before?.count ?? 0) + 1,
      timestamp: clock.now().toISOString(),
    });
  };
}

/** Without secrets, which users put into wrong fields, with invisible characters escaped, cut to `max` characters. */
function displayable(text: string, max: number): string {
  const redacted = redactSecrets(text.slice(0, maxSearched));
  return visibleText(redacted.slice(0, max).toWellFormed()).slice(0, max);
}

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

/** Longest text that is searched for secrets, in characters: a client id has up to 64 KB. */
const maxSearched = 1_024;

/** What happened; what is left out is null. */
export type Finding = Pick<DiagnosisReport, "id" | "name" | "reason"> &
  Partial<Pick<DiagnosisReport, "registered" | "address" | "client_id" | "topic">>;

/** Takes what happened to a device. It costs no further message and never throws. */
export type ReportDiagnosis = (finding: Finding) => void;

interface ReporterOptions {
  readonly clock: Pick<Clock, "now" | "schedule">;
  /** Publishes the live event `diagnostics`. */
  readonly publish: (event: { readonly reports: DiagnosisReport[] }) => void;
}

/** Collects reports for the owner of the diagnostics. Those of one id, name and reason are one, with a count. */
export function createDiagnosisReporter({ clock, publish }: ReporterOptions): ReportDiagnosis {
  const pending = new Map<string, DiagnosisReport>();

  function flush(): void {
    const reports = [...pending.values()];
    pending.clear();
    publish({ reports });
  }

  return ({ id, name, reason, registered = true, address = null, client_id = null, topic = null }) => {
    const shownId = displayable(id, diagnosisLengths.id);
    const key = JSON.stringify([shownId, name, reason]);
    const before = pending.get(key);
    if (before === undefined && pending.size >= (registered === true ? maxReports : maxUnknownReports))
      return;
    if (pending.size === 0) clock.schedule(collectMs, flush);
    pending.set(key, {
      id: shownId,
      name,
      reason,
      registered,
      address,
      client_id: client_id === null ? null : displayable(client_id, diagnosisLengths.client_id),
      topic: topic === null ? null : displayable(topic, diagnosisLengths.topic),
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

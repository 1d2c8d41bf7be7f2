import { type DeviceDiagnosis, DiagnosisWord, diagnosisFrames } from "@devmesh/contracts/model/diagnostics";
import { useQueryClient } from "@tanstack/react-query";
import { Link } from "wouter";
import { useApi } from "../../api/api-context.tsx";
import { queryKeys } from "../../api/query-keys.ts";
import { useReading } from "../../api/use-reading.ts";
import { Card } from "../../components/card.tsx";
import { Failure } from "../../components/failure.tsx";
import { countText } from "../../components/number-text.ts";
import { RelativeTime } from "../../components/relative-time.tsx";
import { StateBadge } from "../../components/state.tsx";
import { Waiting } from "../../components/waiting.tsx";
import { useFrames } from "../../live/live-updates.tsx";
import { devicesWhere } from "../devices/shared/device-conditions.ts";
import { diagnosisDetail, problemText } from "../devices/shared/diagnosis-words.ts";
import { groupedProblems, type ProblemGroup, problemCondition } from "./fleet-facts.ts";
import styles from "./home.module.css";

/** How often problems are read, in milliseconds: of many a second not each has a frame. */
const readMs = 15_000;
/** Newest entries of each problem that are read. */
const readEntries = 20;
/** Ids that are named of each problem. */
const namedIds = 4;
/** Rows of each kind. */
const shown = 5;
const frames: ReadonlySet<string> = new Set(diagnosisFrames);

/** The devices with a problem in the last day, and logins of ids that are no device; a line where there is none. */
export function AttentionCard() {
  const api = useApi();
  const queries = useQueryClient();
  const problems = useReading({
    queryKey: queryKeys.problems,
    queryFn: async ({ signal }) => {
      const query = { where: problemCondition("any"), facets: ["problem" as const] };
      const counts = await api.call("facetDevices", { query, signal });
      const groups = groupedProblems(counts).slice(0, shown);
      // Each by its name: a frequent problem must not crowd out the entries of a rare one.
      const newest = async ({ problem }: ProblemGroup) => {
        const { data: name } = DiagnosisWord.safeParse(problem);
        if (name === undefined) return [];
        return await api.call("listDiagnostics", {
          query: { name, since: "PT24H", limit: readEntries },
          signal,
        });
      };
      const entries = await Promise.all(groups.map(newest));
      return {
        devices: counts.total,
        rows: groups.map((group, nth) => ({ group, entries: entries[nth] ?? [] })),
      };
    },
    refetchInterval: readMs,
    staleTime: 0,
  });
  const unknown = useReading({
    queryKey: queryKeys.unknownDevices,
    queryFn: ({ signal }) => api.call("listUnknownDevices", { signal }),
    refetchInterval: readMs,
    staleTime: 0,
  });
  const first = problems.data?.devices === 0;
  useFrames((batch) => {
    // The first problem is shown at once, further ones with the next reading.
    if (first && batch.some(({ name }) => frames.has(name)))
      void queries.invalidateQueries({ queryKey: queryKeys.problems });
  });
  const devices = problems.data?.devices ?? 0;
  const tried = unknown.data ?? [];
  const isLoading = [problems, unknown].some(({ data, error }) => data === undefined && error === null);
  const isQuiet = problems.data !== undefined && unknown.data !== undefined && devices + tried.length === 0;
  return (
    <Card
      title={devices === 0 ? "Needs attention" : devicesNeedAttention(devices)}
      {...(devices > 0 && { href: devicesWhere(problemCondition("any")), leads: "Show them" })}
      flush
    >
      <Failure
        error={problems.error ?? unknown.error}
        title="What went wrong could not be read"
        onRetry={() => void Promise.all([problems.refetch(), unknown.refetch()])}
      />
      {isLoading && <Waiting rows={2} />}
      {isQuiet && (
        <p className={styles.quiet}>Nothing: no login was refused and no message dropped in the last day.</p>
      )}
      {devices > 0 && (
        <ul className={styles.rows} aria-label="Problems of devices">
          {problems.data?.rows.map((row) => (
            <Problem key={row.group.problem} {...row} />
          ))}
        </ul>
      )}
      {tried.length > 0 && (
        <ul className={styles.rows} aria-label="Logins of unknown devices">
          {tried.slice(0, shown).map((login) => (
            <li key={[login.id, login.address, login.client_id, login.reason].join(" ")} data-look="warn">
              <span className={styles.what}>
                <b className={styles.id}>{login.id || "no user name"}</b>{" "}
                {diagnosisDetail({ ...login, name: "login_refused", topic: null, detail: null })}
              </span>
              <span className={styles.aside}>
                <RelativeTime at={login.last_at} />
              </span>
            </li>
          ))}
        </ul>
      )}
      {tried.length > shown && (
        <p className={styles.quiet}>And {countText(tried.length - shown)} more logins of unknown devices.</p>
      )}
    </Card>
  );
}

function devicesNeedAttention(devices: number): string {
  return devices === 1 ? "1 device needs attention" : `${countText(devices)} devices need attention`;
}

interface ProblemProps {
  readonly group: ProblemGroup;
  /** The newest of them first. */
  readonly entries: readonly DeviceDiagnosis[];
}

/** A problem with the devices that have it; the row leads to them. */
function Problem({ group: { problem, devices, isRefusal }, entries }: ProblemProps) {
  const look = isRefusal ? "bad" : "warn";
  const ids = [...new Set(entries.map(({ id }) => id))].slice(0, namedIds);
  const names = `${ids.join(", ")}${devices > ids.length && ids.length > 0 ? "…" : ""}`;
  return (
    <li data-look={look}>
      <span className={`${styles.what} ${styles.cut}`} title={`${problemText(problem)} ${names}`.trimEnd()}>
        <Link href={devicesWhere(problemCondition(problem))} className={styles.rowLink}>
          <b>{problemText(problem)}</b>
        </Link>{" "}
        <span className={styles.id}>{names}</span>
      </span>
      <StateBadge look={look}>{devices === 1 ? "1 device" : `${countText(devices)} devices`}</StateBadge>
      <span className={styles.aside}>
        {entries[0] !== undefined && <RelativeTime at={entries[0].last_at} />}
      </span>
    </li>
  );
}

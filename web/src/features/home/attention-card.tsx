import { diagnosisFrames } from "@devmesh/contracts/model/diagnostics";
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { Link } from "wouter";
import { useApi } from "../../api/api-context.tsx";
import { queryKeys } from "../../api/query-keys.ts";
import { Card } from "../../components/card.tsx";
import { Failure } from "../../components/failure.tsx";
import { countText } from "../../components/number-text.ts";
import { RelativeTime } from "../../components/relative-time.tsx";
import { StateBadge } from "../../components/state.tsx";
import { useFrames } from "../../live/live-updates.tsx";
import { diagnosisDetail, problemText } from "../devices/shared/diagnosis-words.ts";
import { devicesWhere, groupedProblems, type ProblemGroup, problemCondition } from "./fleet-facts.ts";
import styles from "./home.module.css";

/** How often problems are read, in milliseconds: of many a second not each has a frame. */
const readMs = 15_000;
/** Entries of the diagnostics that are read for the newest of each problem. */
const readEntries = 300;
/** Rows of each kind. */
const shown = 5;
const frames: ReadonlySet<string> = new Set(diagnosisFrames);

/** The devices with a problem in the last day, and logins of ids that are no device; a line where there is none. */
export function AttentionCard() {
  const api = useApi();
  const queries = useQueryClient();
  const problems = useQuery({
    queryKey: queryKeys.problems,
    queryFn: async ({ signal }) => {
      const [counts, entries] = await Promise.all([
        api.call("facetDevices", { query: { where: problemCondition("any"), facets: ["problem"] }, signal }),
        api.call("listDiagnostics", { query: { since: "PT24H", limit: readEntries }, signal }),
      ]);
      return { devices: counts.total, groups: groupedProblems(counts, entries) };
    },
    refetchInterval: readMs,
    staleTime: 0,
  });
  const unknown = useQuery({
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
      {isQuiet && (
        <p className={styles.quiet}>Nothing: no login was refused and no message dropped in the last day.</p>
      )}
      {devices > 0 && (
        <ul className={styles.rows} aria-label="Problems of devices">
          {problems.data?.groups.slice(0, shown).map((group) => (
            <Problem key={group.problem} group={group} />
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

/** A problem with the devices that have it; the row leads to them. */
function Problem({ group: { problem, devices, ids, newest } }: { readonly group: ProblemGroup }) {
  return (
    <li data-look={newest?.name === "login_refused" ? "bad" : "warn"}>
      <span className={styles.what}>
        <Link href={devicesWhere(problemCondition(problem))} className={styles.rowLink}>
          <b>{problemText(problem)}</b>
        </Link>{" "}
        <span className={styles.id}>
          {ids.join(", ")}
          {devices > ids.length && ids.length > 0 && "…"}
        </span>
      </span>
      <StateBadge look={newest?.name === "login_refused" ? "bad" : "warn"}>
        {devices === 1 ? "1 device" : `${countText(devices)} devices`}
      </StateBadge>
      <span className={styles.aside}>
        <span className={styles.age}>{newest !== undefined && <RelativeTime at={newest.last_at} />}</span>
      </span>
    </li>
  );
}

import { Button } from "@mantine/core";
import { useDisclosure } from "@mantine/hooks";
import { Plus } from "lucide-react";
import { type ReactNode, Suspense, useMemo } from "react";
import { lazyView } from "../../components/lazy-view.ts";
import { countText, rateText } from "../../components/number-text.ts";
import { Page } from "../../components/page.tsx";
import { Stat, StatStrip } from "../../components/stat-strip.tsx";
import { StateDot } from "../../components/state.tsx";
import { timeSpan } from "../../components/time-in-words.ts";
import { FiringCard } from "../alerts/firing-card.tsx";
import { useMesh } from "../mesh/mesh-stream.ts";
import type { MeshObservation } from "../mesh/observation.ts";
import { useMeshFigures } from "../mesh/use-mesh-figures.ts";
import { AttentionCard } from "./attention-card.tsx";
import { Course, courseOf } from "./course.tsx";
import { FirstRun, useFirstRun } from "./first-run.tsx";
import styles from "./home.module.css";
import { LastChanges } from "./last-changes.tsx";
import { ServicesLine } from "./services-line.tsx";
import { SilentCard } from "./silent-card.tsx";
import { VersionsCard } from "./versions-card.tsx";

const CreateDevice = lazyView(async () => (await import("../devices/list/create-device.tsx")).CreateDevice);

/** What matters now: whether the services run, the fleet and its traffic, and what was changed. */
export function HomeTab() {
  const { observation, trouble } = useMesh();
  const [creating, create] = useDisclosure(false);
  const fleet = observation?.fleet ?? null;
  const firstRun = useFirstRun();
  return (
    <Page
      title="Home"
      actions={
        <Button leftSection={<Plus size={16} />} onClick={create.open}>
          Add device
        </Button>
      }
    >
      <ServicesLine observation={observation} trouble={trouble} />
      {firstRun.device !== undefined && (
        <FirstRun device={firstRun.device} onAdd={create.open} onEnd={firstRun.end} />
      )}
      <Now observation={observation} />
      <FiringCard />
      <AttentionCard />
      <div className={styles.three}>
        <VersionsCard fleet={fleet} isUnknown={observation !== null} />
        <SilentCard fleet={fleet} />
        <LastChanges />
      </div>
      {creating && (
        <Suspense>
          <CreateDevice onClose={create.close} />
        </Suspense>
      )}
    </Page>
  );
}

/** The fleet and its traffic in figures, with the course of each over the day. */
function Now({ observation }: { readonly observation: MeshObservation | null }) {
  const { figures: now, history } = useMeshFigures(observation);
  const online = now?.devicesOnline ?? null;
  const devices = observation?.fleet?.devices ?? null;
  const offline = online === null || devices === null ? null : Math.max(0, devices - online);
  const refused = now?.refusedPerSecond ?? 0;
  const courses = useMemo(() => {
    const known = history ?? [];
    return {
      online: courseOf(known, "devices_online"),
      records: courseOf(known, "records"),
      calls: courseOf(known, "device_calls"),
      logins: courseOf(known, "logins"),
    };
  }, [history]);
  const isLoading = history === null;

  const rate = (
    name: keyof typeof courses,
    term: string,
    perSecond: number | null,
    href: string,
    aside?: ReactNode,
  ) => (
    <Stat
      term={term}
      value={perSecond === null ? null : rateText(perSecond)}
      unit="a second"
      href={href}
      aside={aside || span(courses[name])}
    >
      <Course
        course={courses[name]}
        href={href}
        isLoading={isLoading}
        words={(value) => `${rateText(value)} a second`}
      />
    </Stat>
  );
  return (
    <div className={styles.now}>
      <StatStrip label="Now">
        <Stat
          term="Devices online"
          value={online === null ? null : countText(online)}
          unit={devices !== null && `of ${countText(devices)}`}
          href="/devices?online=true"
          aside={
            offline !== null && (
              <>
                <StateDot look="idle" /> {countText(offline)} offline · {timeSpan(courses.online.spanMs)}
              </>
            )
          }
        >
          <Course
            course={courses.online}
            href="/devices?online=true"
            words={(value) => `${countText(value)} online`}
            isLoading={isLoading}
            labelled
          />
        </Stat>
        {rate("records", "Records", now?.recordsPerSecond ?? null, "/data")}
        {rate("calls", "Calls", now?.deviceCallsPerSecond ?? null, "/services")}
        {rate(
          "logins",
          "Logins",
          now?.loginsPerSecond ?? null,
          "/devices?sort=lastSeen&direction=descending",
          refused > 0 && <span className={styles.refused}>{rateText(refused)} refused</span>,
        )}
      </StatStrip>
    </div>
  );
}

/** The stretch of time of a course, and its highest minute. */
function span({ lines, spanMs, highest }: ReturnType<typeof courseOf>): string {
  return lines.length === 0 ? "" : `${timeSpan(spanMs)}, at most ${rateText(highest)}`;
}

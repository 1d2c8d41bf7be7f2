import { Paper } from "@mantine/core";
import { CircleAlert, CircleCheck } from "lucide-react";
import { Link } from "wouter";
import { bytesText, countText } from "../../components/number-text.ts";
import { StateDot } from "../../components/state.tsx";
import { figuresTogether, isWell, type MeshObservation } from "../mesh/observation.ts";
import styles from "./home.module.css";

/** Properties of {@link ServicesLine}. */
interface ServicesLineProps {
  readonly observation: MeshObservation | null;
  /** Why there is no observation. */
  readonly trouble: string | null;
}

/** Whether all services run, in a line that leads to them; what does not answer is named. */
export function ServicesLine({ observation, trouble }: ServicesLineProps) {
  const isUnknown = observation === null && trouble !== null;
  const services = observation?.services ?? [];
  const wrong = services.filter((service) => !isWell(service)).map(({ name }) => name);
  return (
    <Paper
      withBorder
      component="section"
      className={styles.services}
      aria-label="Services"
      data-wrong={wrong.length > 0 || isUnknown || undefined}
    >
      <p role="status">
        {isUnknown && (
          <>
            <CircleAlert size={18} aria-hidden="true" />
            {/* Beside the icon, also on a phone. */}
            <Link href="/services" style={{ flex: 1 }}>
              {trouble}
            </Link>
          </>
        )}
        {observation !== null && (
          <>
            {wrong.length === 0 ? (
              <CircleCheck size={18} aria-hidden="true" />
            ) : (
              <CircleAlert size={18} aria-hidden="true" />
            )}
            <Link href="/services">
              {wrong.length === 0
                ? `All ${countText(services.length)} services run`
                : `${wrong.join(", ")} ${wrong.length === 1 ? "does" : "do"} not answer`}
            </Link>
            <Backlog observation={observation} />
          </>
        )}
      </p>
      <div className={styles.names} aria-hidden="true">
        {services.map((service) => (
          <span key={service.name}>
            <StateDot look={isWell(service) ? "good" : "bad"} />
            {service.name}
          </span>
        ))}
      </div>
    </Paper>
  );
}

/** What waits, and the size of what is stored, as far as it is known. */
function Backlog({ observation }: { readonly observation: MeshObservation }) {
  const { data, rpc_bridge: messages, dead_mail: mail } = observation.queues;
  const { storedBytes, recordsPerSecond } = figuresTogether(observation);
  // What the mesh handles within a second is under way rather than waiting.
  const usual = Math.max(10, recordsPerSecond ?? 0);
  const facts = [
    data !== null && messages !== null && Math.max(data, messages) <= usual && "no backlog",
    data !== null && data > usual && `${countText(data)} records wait to be stored`,
    messages !== null && messages > usual && `${countText(messages)} messages wait`,
    mail !== null && mail > 0 && `${countText(mail)} mails are undelivered`,
  ];
  const stored = storedBytes === null ? [] : [`${bytesText(storedBytes)} of records`];
  return [...facts.filter((fact) => fact !== false), ...stored].map((fact) => (
    <span key={fact} data-size={stored.includes(fact) || undefined}>
      <span aria-hidden="true">·</span>
      {fact}
    </span>
  ));
}

import { Button } from "@mantine/core";
import { CircleAlert } from "lucide-react";
import { ApiProblem } from "../api/api-problem.ts";
import styles from "./failure.module.css";

/** Properties of {@link Failure}. */
interface FailureProps {
  /** Null or undefined for none. */
  readonly error: unknown;
  /** The heading: what failed. */
  readonly title: string;
  readonly onRetry?: (() => void) | undefined;
}

/** Shows what failed, the reason, and the id of the request; nothing without an error. */
export function Failure({ error, title, onRetry }: FailureProps) {
  if (error == null) return null;
  const problem = error instanceof ApiProblem ? error : null;
  return (
    <div className={styles.failure} role="alert">
      <CircleAlert size={16} className={styles.icon} aria-hidden="true" />
      <div className={styles.text}>
        <strong>{title}</strong>
        <span>{error instanceof Error ? error.message : String(error)}</span>
        {problem?.errors.map(({ pointer, detail }) => (
          <span key={pointer}>
            {pointer.replace(/^\//, "")}: {detail}
          </span>
        ))}
        {(onRetry !== undefined || problem?.requestId) && (
          <div className={styles.next}>
            {onRetry && (
              <Button size="xs" variant="default" onClick={onRetry}>
                Try again
              </Button>
            )}
            {problem?.requestId && <small>Request {problem.requestId}</small>}
          </div>
        )}
      </div>
    </div>
  );
}

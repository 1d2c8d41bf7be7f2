import { Alert, Button, Group, Text } from "@mantine/core";
import { ApiProblem } from "../api/api-problem.ts";

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
    <Alert color="red" title={title} role="alert">
      <Text size="sm">{error instanceof Error ? error.message : String(error)}</Text>
      {problem?.errors.map(({ pointer, detail }) => (
        <Text size="sm" key={pointer}>
          {pointer.replace(/^\//, "")}: {detail}
        </Text>
      ))}
      <Group justify="space-between" mt={4}>
        <Text size="xs" c="dimmed">
          {problem?.requestId ? `Request ${problem.requestId}` : ""}
        </Text>
        {onRetry && (
          <Button size="xs" variant="default" onClick={onRetry}>
            Try again
          </Button>
        )}
      </Group>
    </Alert>
  );
}

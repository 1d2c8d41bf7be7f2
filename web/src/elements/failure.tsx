import { Alert, Button, Group, Text } from "@mantine/core";
import { ApiProblem } from "../api/api-problem.ts";

/** What is told of something that failed. */
interface FailureProps {
  readonly error: unknown;
  /** What failed, as a heading. */
  readonly title: string;
  readonly onRetry?: (() => void) | undefined;
}

/** Says what failed, why, and by which request id to ask about it. */
export function Failure({ error, title, onRetry }: FailureProps) {
  const problem = error instanceof ApiProblem ? error : null;
  return (
    <Alert color="red" variant="light" title={title} role="alert">
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

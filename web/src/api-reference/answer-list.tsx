import { Code, Stack, Text } from "@mantine/core";
import { Tag } from "../elements/tag.tsx";
import styles from "./api-reference.module.css";
import type { NamedSchemas, Operation } from "./openapi-document.ts";
import { Prose } from "./prose.tsx";
import { describeSchema } from "./schema-description.ts";
import { SchemaView } from "./schema-view.tsx";

interface AnswerListProps {
  readonly responses: Operation["responses"];
  readonly named: NamedSchemas;
}

/** The answers of an operation by status: successes opened, problems to be opened. */
export function AnswerList({ responses, named }: AnswerListProps) {
  return (
    <Stack gap={4} mt={4}>
      {Object.entries(responses).map(([status, { description, headers, content }]) => {
        const success = Number(status) < 400;
        return (
          <details key={status} open={success} className={styles.answer}>
            <summary>
              <Tag look={success ? "good" : "bad"}>{status}</Tag>{" "}
              <Text span size="sm">
                {success ? description : reasonsOf(description)}
              </Text>
            </summary>
            {!success && <Prose text={description} />}
            {Object.entries(content).map(([type, { schema }]) => (
              <div key={type}>
                <Text size="sm">
                  Body: <Code>{type}</Code>
                </Text>
                <SchemaView schema={describeSchema(schema, named)} marked="optional" />
              </div>
            ))}
            {Object.keys(headers).length > 0 && (
              <dl className={styles.headers}>
                {Object.entries(headers).map(([name, header]) => (
                  <div key={name}>
                    <dt>{name}</dt>
                    <dd>
                      <Prose text={header.description} />
                    </dd>
                  </div>
                ))}
              </dl>
            )}
          </details>
        );
      })}
    </Stack>
  );
}

/** The reasons that a problem's description lists, without what they mean. */
function reasonsOf(description: string): string {
  const reasons = [...description.matchAll(/^- `([^`]+)`/gm)].map(([, reason]) => reason);
  return reasons.length > 0 ? reasons.join(", ") : description;
}

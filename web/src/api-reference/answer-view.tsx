import { Code, Group, Paper, Text } from "@mantine/core";
import { CopyButton } from "../elements/copy-button.tsx";
import { Tag } from "../elements/tag.tsx";
import styles from "./api-reference.module.css";
import { readableBody, tellingHeaders } from "./readable-answer.ts";
import { maxBodyLength, type TriedAnswer } from "./send-request.ts";

/** An answer: its status, how long it took, the headers that tell something, its body. */
export function AnswerView({ answer }: { readonly answer: TriedAnswer }) {
  const { status, statusText, headers, cut, ended, tookMs } = answer;
  const body = readableBody(answer);
  return (
    <Paper withBorder p="xs" component="section" aria-label="The answer">
      <Group justify="space-between" gap="xs">
        <Group gap="xs">
          <Tag look={status < 400 ? "good" : "bad"}>{`${status} ${statusText}`.trim()}</Tag>
          <Text size="sm">
            {ended ? `took ${tookMs.toFixed(0)} ms` : "goes on"}
            {cut && `, cut after ${maxBodyLength.toLocaleString("en")} characters`}
          </Text>
        </Group>
        {body !== "" && <CopyButton text={body} what="the answer" />}
      </Group>
      <dl className={styles.headers}>
        {tellingHeaders(headers).map(({ name, value }) => (
          <div key={name}>
            <dt>{name}</dt>
            <dd>{value}</dd>
          </div>
        ))}
      </dl>
      {body === "" ? (
        <Text size="sm" c="dimmed">
          {ended ? "No body." : "Nothing of the body has come yet."}
        </Text>
      ) : (
        <Code block className={styles.body} tabIndex={0} role="region" aria-label="Body of the answer">
          {body}
        </Code>
      )}
    </Paper>
  );
}

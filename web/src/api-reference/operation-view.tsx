import { api as routes } from "@devmesh/contracts/rest/api";
import type { RouteDeclaration } from "@devmesh/contracts/rest/route";
import { Code, Group, Stack, Table, Text, Title } from "@mantine/core";
import { useEffect, useRef } from "react";
import { CopyButton } from "../elements/copy-button.tsx";
import { Tag } from "../elements/tag.tsx";
import { AnswerList } from "./answer-list.tsx";
import styles from "./api-reference.module.css";
import { MethodTag } from "./method-tag.tsx";
import type { NamedSchemas, Operation } from "./openapi-document.ts";
import { Prose } from "./prose.tsx";
import { describeSchema } from "./schema-description.ts";
import { SchemaDetails, SchemaView, TypeName } from "./schema-view.tsx";
import { fieldOf } from "./tried-request.ts";
import { TryForm } from "./try-form.tsx";

interface OperationViewProps {
  readonly operation: Operation;
  readonly named: NamedSchemas;
  /** It was navigated to within the reference. */
  readonly takesFocus: boolean;
}

/** One operation: what it does, takes and answers, and trying it. */
export function OperationView({ operation, named, takesFocus }: OperationViewProps) {
  const { operationId, method, path, summary, description, parameters, requestBody, responses } = operation;
  const heading = useRef<HTMLHeadingElement>(null);
  useEffect(() => {
    if (!takesFocus) return;
    window.scrollTo({ top: 0 });
    heading.current?.focus({ preventScroll: true });
  }, [takesFocus]);
  const body = requestBody?.content["application/json"]?.schema;
  return (
    <Stack gap="md" component="article" aria-labelledby="operation">
      <div>
        <Title order={2} size="h3" id="operation" ref={heading} tabIndex={-1}>
          {summary}
        </Title>
        <Group gap="xs" mt={4}>
          <MethodTag method={method} />
          <Code className={styles.path}>{path}</Code>
          <CopyButton text={path} what="the path" />
        </Group>
      </div>
      <Prose text={description} />
      {parameters.length > 0 && (
        <section>
          <Title order={3} size="h5">
            Parameters
          </Title>
          <div className={styles.scrolls}>
            <Table aria-label="Parameters" verticalSpacing={4}>
              <Table.Thead>
                <Table.Tr>
                  <Table.Th>Name</Table.Th>
                  <Table.Th>In</Table.Th>
                  <Table.Th>What it is</Table.Th>
                </Table.Tr>
              </Table.Thead>
              <Table.Tbody>
                {parameters.map((parameter) => {
                  const schema = describeSchema(parameter.schema, named);
                  return (
                    <Table.Tr key={fieldOf(parameter)}>
                      <Table.Th scope="row">
                        <span className={styles.name}>{parameter.name}</span>
                        {parameter.required && <span className={styles.required}> required</span>}
                      </Table.Th>
                      <Table.Td>{parameter.in}</Table.Td>
                      <Table.Td>
                        <TypeName>{schema.type}</TypeName>
                        <SchemaDetails
                          schema={{ ...schema, description: parameter.description ?? schema.description }}
                          marked="required"
                        />
                      </Table.Td>
                    </Table.Tr>
                  );
                })}
              </Table.Tbody>
            </Table>
          </div>
        </section>
      )}
      {body !== undefined && (
        <section>
          <Group gap="xs">
            <Title order={3} size="h5">
              Body
            </Title>
            {requestBody?.required ? <Tag>required</Tag> : <Tag>may be left out</Tag>}
          </Group>
          <SchemaView schema={describeSchema(body, named)} marked="required" />
        </section>
      )}
      <section>
        <Title order={3} size="h5">
          Try it
        </Title>
        {!takesMasterKey(operationId) && (
          <Text size="sm" c="dimmed">
            A master key, which you are signed in with, is not what this operation takes: expect 403.
          </Text>
        )}
        <TryForm operation={operation} named={named} />
      </section>
      <section>
        <Title order={3} size="h5">
          Answers
        </Title>
        <AnswerList responses={responses} named={named} />
      </section>
    </Stack>
  );
}

/** Whether a master key is accepted, or none is needed; the document tells that only in words. */
function takesMasterKey(operationId: string): boolean {
  const all: Readonly<Record<string, RouteDeclaration>> = routes;
  const auth = all[operationId]?.auth;
  return auth == null || auth.includes("master");
}

import { Anchor, Stack, Text, Title } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { useMemo, useState } from "react";
import { Link, useParams } from "wouter";
import { useApi } from "../api/api-context.tsx";
import { queryKeys } from "../api/query-keys.ts";
import { Failure } from "../elements/failure.tsx";
import { Page } from "../elements/page.tsx";
import { Waiting } from "../elements/waiting.tsx";
import styles from "./api-reference.module.css";
import { type OpenApiDocument, operationGroups } from "./openapi-document.ts";
import { OperationList } from "./operation-list.tsx";
import { OperationView } from "./operation-view.tsx";
import { Prose } from "./prose.tsx";
import { documentPath, readDocument } from "./read-document.ts";
import { referencePath } from "./reference-path.ts";

/** The reference of the API, out of its OpenAPI document; each operation can be tried. */
export function ReferenceTab() {
  const api = useApi();
  const { operation: chosen } = useParams<{ operation?: string }>();
  const [first] = useState(chosen);
  const { data, error, isPending, refetch } = useQuery({
    queryKey: queryKeys.apiDocument,
    queryFn: ({ signal }) => readDocument(api, signal),
    staleTime: "static",
  });
  const groups = useMemo(() => (data === undefined ? [] : operationGroups(data)), [data]);
  const operation = groups
    .flatMap(({ operations }) => operations)
    .find(({ operationId }) => operationId === chosen);
  return (
    <Page title="API" part={operation?.summary}>
      {error !== null && (
        <Failure error={error} title="The reference could not be read" onRetry={() => void refetch()} />
      )}
      {isPending && <Waiting />}
      {data !== undefined && (
        <div className={styles.columns}>
          <OperationList groups={groups} chosen={chosen} />
          <div>
            {chosen !== undefined && (
              <Anchor component={Link} href={referencePath} size="sm" className={styles.back}>
                All operations
              </Anchor>
            )}
            {operation !== undefined && (
              <OperationView
                key={operation.operationId}
                operation={operation}
                named={data.components.schemas}
                takesFocus={operation.operationId !== first}
              />
            )}
            {operation === undefined && chosen !== undefined && (
              <Text role="alert">There is no operation {chosen}.</Text>
            )}
            {chosen === undefined && <Introduction info={data.info} />}
          </div>
        </div>
      )}
    </Page>
  );
}

function Introduction({ info: { title, version, description } }: Pick<OpenApiDocument, "info">) {
  return (
    <Stack gap="xs">
      <Title order={2} size="h4">
        {title} {version}
      </Title>
      <Prose text={description} />
      <Text size="sm">
        Each operation can be tried here, with the key that you are signed in with. For programs there is the{" "}
        <Anchor href={documentPath} target="_blank" rel="noreferrer" underline="always" size="sm">
          OpenAPI document
        </Anchor>
        .
      </Text>
    </Stack>
  );
}

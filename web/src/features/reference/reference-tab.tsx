import { Text, useComputedColorScheme } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { useEffect, useRef, useState } from "react";
import { useLocation, useParams } from "wouter";
import { useApi } from "../../api/api-context.tsx";
import { queryKeys } from "../../api/query-keys.ts";
import { Confirmation } from "../../components/confirmation.tsx";
import { Failure } from "../../components/failure.tsx";
import { FilterInput } from "../../components/filter-input.tsx";
import { Page } from "../../components/page.tsx";
import { Waiting } from "../../components/waiting.tsx";
import { type DrawnReference, drawReference } from "./draw-reference.ts";
import { findOperation, type OpenApiDocument, readDocument } from "./read-document.ts";
import { prepareRequest } from "./tried-request.ts";

/** The API reference; each operation can be tried with the key of the session. */
export function ReferenceTab() {
  const api = useApi();
  const { operation: chosen } = useParams<{ operation?: string }>();
  const { data, error, isPending, refetch } = useQuery({
    queryKey: queryKeys.apiDocument,
    queryFn: ({ signal }) => readDocument(api, signal),
    staleTime: "static",
  });
  const operation = data && findOperation(data, chosen);
  return (
    <Page title="API" part={operation?.summary}>
      <Failure error={error} title="The reference could not be read" onRetry={() => void refetch()} />
      {isPending && <Waiting />}
      {data !== undefined && chosen !== undefined && operation === undefined && (
        <Text role="alert">There is no operation {chosen}.</Text>
      )}
      {data !== undefined && <Reference document={data} chosen={operation?.operationId} />}
    </Page>
  );
}

/** A request that waits for the user's decision. */
interface OpenQuestion {
  readonly description: string;
  /** Only its first call counts. */
  readonly decide: (confirmed: boolean) => void;
}

interface ReferenceProps {
  readonly document: OpenApiDocument;
  readonly chosen: string | undefined;
}

function Reference({ document: spec, chosen }: ReferenceProps) {
  const api = useApi();
  const [, navigate] = useLocation();
  const [filter, setFilter] = useState("");
  const [question, setQuestion] = useState<OpenQuestion | null>(null);
  const place = useRef<HTMLDivElement>(null);
  const drawn = useRef<DrawnReference | null>(null);
  const scheme = useComputedColorScheme("light", { getInitialValueInEffect: false });

  useEffect(() => {
    const element = document.createElement("div");
    place.current?.append(element);
    const { origin } = window.location;
    const confirm = (description: string) =>
      new Promise<boolean>((resolve) => setQuestion({ description, decide: resolve }));
    drawn.current = drawReference(element, {
      document: spec,
      origin,
      prepare: (request) => prepareRequest(request, { api, origin, confirm }),
      onOpen: (operationId) => navigate(`/reference/${operationId}`),
    });
    return () => element.remove();
  }, [api, spec, navigate]);
  useEffect(() => {
    if (chosen !== undefined) drawn.current?.open(chosen);
  }, [chosen]);
  useEffect(() => {
    drawn.current?.filter(filter);
  }, [filter]);
  // Swagger UI takes its dark theme from this class.
  useEffect(() => {
    document.documentElement.classList.toggle("dark-mode", scheme === "dark");
    return () => document.documentElement.classList.remove("dark-mode");
  }, [scheme]);

  return (
    <>
      <FilterInput
        aria-label="Find an operation"
        placeholder="Part of its path or title"
        filter={filter}
        onFilter={setFilter}
      />
      <div ref={place} />
      {question !== null && (
        <Confirmation
          title="Send this request?"
          action="Send"
          run={async () => question.decide(true)}
          onClose={() => {
            question.decide(false);
            setQuestion(null);
          }}
        >
          {question.description} is executed on this server and cannot be undone.
        </Confirmation>
      )}
    </>
  );
}

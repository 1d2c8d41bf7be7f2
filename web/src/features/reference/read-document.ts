import { z } from "zod";
import type { ApiClient } from "../../api/api-client.ts";
import { UnexpectedAnswer } from "../../api/api-problem.ts";

/** Path of the gateway's OpenAPI document. */
const documentPath = "/api/v2/openapi.json";

const Operation = z.looseObject({ operationId: z.string(), summary: z.string(), tags: z.array(z.string()) });
const OpenApiDocument = z.looseObject({
  paths: z.record(z.string(), z.record(z.string(), Operation)),
});
export type OpenApiDocument = z.infer<typeof OpenApiDocument>;
export type Operation = z.infer<typeof Operation>;

/** Reads the OpenAPI document. Rejects as `open` does, and with an {@link UnexpectedAnswer} for other content. */
export async function readDocument(api: ApiClient, signal: AbortSignal): Promise<OpenApiDocument> {
  const response = await api.open(documentPath, { signal });
  try {
    return OpenApiDocument.parse(await response.json());
  } catch (cause) {
    signal.throwIfAborted();
    throw new UnexpectedAnswer(documentPath, cause);
  }
}

/** The operation with an id; undefined if the document has none. */
export function findOperation({ paths }: OpenApiDocument, id: string | undefined): Operation | undefined {
  return Object.values(paths)
    .flatMap((methods) => Object.values(methods))
    .find(({ operationId }) => operationId === id);
}

type Part = Readonly<Record<string, unknown>>;

/** The part of a document at a path, with its references resolved; a schema within itself stays a reference. */
export function resolvedPart(document: OpenApiDocument, path: readonly string[]): unknown {
  const at = (names: readonly string[]) =>
    names.reduce<unknown>((part, name) => (part as Part | undefined)?.[name], document);
  const resolve = (part: unknown, within: readonly string[]): unknown => {
    if (Array.isArray(part)) return part.map((item) => resolve(item, within));
    if (typeof part !== "object" || part === null) return part;
    const { $ref, ...members } = part as Part;
    if (typeof $ref !== "string")
      return Object.fromEntries(
        Object.entries(part).map(([name, member]) => [name, resolve(member, within)]),
      );
    if (within.includes($ref)) return part;
    const target = at($ref.split("/").slice(1));
    return { ...(resolve(target, [...within, $ref]) as Part), ...members };
  };
  return resolve(at(path), []);
}

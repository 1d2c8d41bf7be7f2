import type { ApiClient } from "../api/api-client.ts";
import { UnexpectedAnswer } from "../api/api-problem.ts";
import { OpenApiDocument } from "./openapi-document.ts";

/** Where the gateway serves its OpenAPI document. */
export const documentPath = "/api/v2/openapi.json";

/** Reads the OpenAPI document. Rejects as the client's `open` does, and with an {@link UnexpectedAnswer} for what is none. */
export async function readDocument(api: ApiClient, signal: AbortSignal): Promise<OpenApiDocument> {
  const response = await api.open(documentPath, { signal });
  try {
    return OpenApiDocument.parse(await response.json());
  } catch (cause) {
    signal.throwIfAborted();
    throw new UnexpectedAnswer(documentPath, cause);
  }
}

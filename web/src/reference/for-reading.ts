/** What is changed of an OpenAPI document, each part unchecked: a page that shows less is better than none. */
interface DescribedApi {
  readonly info: object;
  readonly paths: Readonly<Record<string, Readonly<Record<string, object>>>>;
  readonly components: { readonly securitySchemes: Readonly<Record<string, object>> };
}

/**
 * The OpenAPI document for the page: requests go to the page's own origin with the key in a header, never in the URL,
 * and `null` is a type beside another.
 */
export function forReading(document: DescribedApi, origin: string): object {
  const { info, paths, components } = nullsAsTypes(document) as DescribedApi;
  const { access_token: _, ...securitySchemes } = components.securitySchemes;
  return {
    ...document,
    // The title is the entry of the overview in the navigation.
    info: { ...info, title: "Overview" },
    servers: [{ url: origin }],
    paths: Object.fromEntries(
      Object.entries(paths).map(([path, operations]) => [
        path,
        Object.fromEntries(
          Object.entries(operations).map(([method, operation]) => [method, withHeaderOnly(operation)]),
        ),
      ]),
    ),
    components: { ...components, securitySchemes },
  };
}

function withHeaderOnly(operation: { readonly security?: readonly object[] }): object {
  if (operation.security === undefined) return operation;
  return { ...operation, security: operation.security.filter((scheme) => !("access_token" in scheme)) };
}

/** `anyOf` of a type and null as one type: the page draws alternatives as a tree. */
function nullsAsTypes(part: unknown): unknown {
  if (Array.isArray(part)) return part.map(nullsAsTypes);
  if (typeof part !== "object" || part === null) return part;
  const members = Object.fromEntries(
    Object.entries(part).map(([name, value]) => [name, nullsAsTypes(value)]),
  );
  const { anyOf, ...others } = members;
  if (!Array.isArray(anyOf) || anyOf.length !== 2 || anyOf[1]?.type !== "null") return members;
  return { ...anyOf[0], ...others, ...(anyOf[0].type !== undefined && { type: [anyOf[0].type, "null"] }) };
}

import SwaggerUIBundle, { type SwaggerRequest } from "swagger-ui-dist/swagger-ui-es-bundle.js";
import "swagger-ui-dist/swagger-ui.css";
import "./reference.css";
import { findOperation, type OpenApiDocument, resolvedPart } from "./read-document.ts";

/** Options of {@link drawReference}. */
interface ReferenceOptions {
  readonly document: OpenApiDocument;
  readonly origin: string;
  /** Completes each request before it is sent. */
  readonly prepare: (request: SwaggerRequest) => Promise<SwaggerRequest>;
  /** Called with the id of an operation that the user opens. */
  readonly onOpen: (operationId: string) => void;
}

/** The reference in the page. */
export interface DrawnReference {
  readonly open: (operationId: string) => void;
  /** Shows only operations with this text in method, path, summary or id. */
  readonly filter: (text: string) => void;
}

/** Operations of a tag, as Swagger UI lists them in Immutable.js collections. */
interface ListedOperations {
  readonly size: number;
  filter(keep: (operation: { getIn(path: readonly string[]): unknown }) => boolean): ListedOperations;
}
interface Tag {
  get(name: "operations"): ListedOperations;
  set(name: "operations", operations: ListedOperations): Tag;
}
interface Tags {
  map(change: (tag: Tag) => Tag): Tags;
  filter(keep: (tag: Tag) => boolean): Tags;
}

const hidden = () => () => null;

/** Draws the API reference into an element with Swagger UI. */
export function drawReference(element: HTMLElement, options: ReferenceOptions): DrawnReference {
  const { document, origin, prepare, onOpen } = options;
  const operations = Object.values(document.paths).flatMap((methods) => Object.values(methods));
  const tags = new Set(operations.flatMap((operation) => operation.tags));
  let opened: string | null = null;
  const plugin = {
    // The key comes from the session and the server is the page's own.
    wrapComponents: {
      AuthorizeBtnContainer: hidden,
      authorizeOperationBtn: hidden,
      ServersContainer: hidden,
      FilterContainer: hidden,
      TextArea:
        (Original: unknown, { React }: { React: typeof import("react") }) =>
        (props: object) =>
          React.createElement(Original as "textarea", { "aria-label": "Body", ...props }),
    },
    statePlugins: {
      layout: {
        wrapActions: {
          show:
            (show: (thing: readonly string[], shown: boolean) => unknown) =>
            (thing: readonly string[], shown: boolean) => {
              const [kind, , operationId] = thing;
              if (kind === "operations" && operationId !== undefined && shown && operationId !== opened) {
                opened = operationId;
                onOpen(operationId);
              }
              return show(thing, shown);
            },
        },
      },
    },
    fn: {
      // Swagger UI's own resolver takes seconds for a document of OpenAPI 3.1.
      resolveSubtree: async (_spec: unknown, path: readonly string[]) => ({
        spec: resolvedPart(document, path),
        errors: [],
      }),
      opsFilter: (tags: Tags, phrase: string) =>
        tags
          .map((tag) => tag.set("operations", operationsWith(tag.get("operations"), phrase)))
          .filter((tag) => tag.get("operations").size > 0),
    },
  };
  const ui = SwaggerUIBundle({
    spec: { ...document, servers: [{ url: origin }] },
    domNode: element,
    plugins: [() => plugin],
    filter: "",
    docExpansion: "none",
    validatorUrl: null,
    tryItOutEnabled: true,
    defaultModelsExpandDepth: -1,
    displayRequestDuration: true,
    // The shown curl command has the request without the key.
    showMutatedRequest: false,
    syntaxHighlight: { activated: false },
    requestInterceptor: prepare,
  });
  return {
    open(operationId) {
      const tag = findOperation(document, operationId)?.tags[0];
      if (tag === undefined || operationId === opened) return;
      opened = operationId;
      ui.layoutActions.show(["operations-tag", tag], true);
      ui.layoutActions.show(["operations", tag, operationId], true);
      scrollTo(element, `[id$="-${CSS.escape(operationId)}"]`);
    },
    filter(text) {
      ui.layoutActions.updateFilter(text);
      if (text.trim() !== "") for (const tag of tags) ui.layoutActions.show(["operations-tag", tag], true);
    },
  };
}

const searched = [["method"], ["path"], ["operation", "summary"], ["operation", "operationId"]];

function operationsWith(operations: ListedOperations, phrase: string): ListedOperations {
  const wanted = phrase.trim().toLowerCase();
  return operations.filter((operation) =>
    searched
      .map((path) => operation.getIn(path))
      .join(" ")
      .toLowerCase()
      .includes(wanted),
  );
}

/** Scrolls to the first match of a selector as soon as it is in the page. */
function scrollTo(within: HTMLElement, selector: string): void {
  const tryNow = () => {
    const target = within.querySelector(selector);
    target?.scrollIntoView();
    return target !== null;
  };
  if (tryNow()) return;
  const drawing = new MutationObserver(() => {
    if (tryNow()) drawing.disconnect();
  });
  drawing.observe(within, { childList: true, subtree: true });
}

import "openapi-explorer";
import { forReading } from "./for-reading.ts";
import shadowStyle from "./shadow.css?inline";

/** Where Mantine keeps the theme that was chosen in the dashboard. */
const themeKey = "mantine-color-scheme-value";

/** The element `openapi-explorer`, as far as it is used. */
interface OpenApiExplorer extends HTMLElement {
  /** Shows a document, whose references it resolves. */
  loadSpec(document: object): Promise<void>;
  readonly resolvedSpec: { readonly tags: readonly (Place & { readonly paths: readonly Place[] })[] };
}

/** What the address can name. */
interface Place {
  readonly elementId: string;
}

/** A class of Lit, whose styles are fixed when its first element is made. */
interface LitClass {
  finalize(): void;
  readonly elementStyles: CSSStyleSheet[];
}

const dark = matchMedia("(prefers-color-scheme: dark)");

function applyTheme(): void {
  const chosen = localStorage.getItem(themeKey);
  const theme = chosen === "light" || chosen === "dark" ? chosen : dark.matches ? "dark" : "light";
  document.documentElement.dataset.mantineColorScheme = theme;
}

/** The element and its parts each have a shadow tree, which styles of the page do not reach. */
function styleShadowTrees(): void {
  const sheet = new CSSStyleSheet();
  sheet.replaceSync(shadowStyle);
  for (const name of [
    "openapi-explorer",
    "api-request",
    "api-response",
    "schema-table",
    "syntax-highlighter",
  ]) {
    const element = customElements.get(name) as unknown as LitClass | undefined;
    element?.finalize();
    element?.elementStyles.push(sheet);
  }
}

async function show(): Promise<void> {
  const introduction = document.getElementById("reference");
  const answer = await fetch("/api/v2/openapi.json");
  if (introduction === null || !answer.ok) return;
  const explorer = document.createElement("openapi-explorer") as OpenApiExplorer;
  for (const [name, value] of Object.entries(attributes)) explorer.setAttribute(name, value);
  explorer.append(...introduction.children);
  // The explorer adds the first place to the history unless it is in the address: "back" would stay on this page.
  if (location.hash === "") history.replaceState(null, "", "#?route=overview");
  introduction.replaceWith(explorer);
  await explorer.loadSpec(forReading(await answer.json(), location.origin));
  const leaveUnknown = () => {
    // The explorer shows nothing for it, such as an operation of another release.
    if (!isKnown(explorer.resolvedSpec)) location.replace("#?route=overview");
  };
  leaveUnknown();
  addEventListener("hashchange", leaveUnknown);
}

function isKnown({ tags }: OpenApiExplorer["resolvedSpec"]): boolean {
  const route = new URLSearchParams(location.hash.split("?")[1]).get("route") ?? "";
  if (/^(overview|auth$)/.test(route)) return true;
  return tags.some(
    ({ elementId, paths }) =>
      route === elementId ||
      route.startsWith(`${elementId}--`) ||
      paths.some((path) => path.elementId === route),
  );
}

const attributes = {
  "hide-server-selection": "true",
  "hide-components": "true",
  collapse: "true",
  "default-schema-tab": "body",
  "schema-expand-level": "2",
  "fetch-credentials": "omit",
};

applyTheme();
dark.addEventListener("change", applyTheme);
addEventListener("storage", applyTheme);
for (const place of document.querySelectorAll("[data-origin]")) place.textContent = location.origin;
styleShadowTrees();
void show();

import { serviceNames } from "@devmesh/contracts/mesh";
import type { Plugin } from "vite";

/** Methods of schemas that document them: nothing in the browser reads what they add. */
const documenting: ReadonlySet<string> = new Set(["describe", "meta"]);

/** Members of routes, errors and topics that are texts for their readers. */
const texts: ReadonlySet<string> = new Set(["summary", "description", "when"]);

/** Members of routes that say how the gateway answers: contracts of services, which come with them. */
const servers: ReadonlySet<string> = new Set(["calls"]);

/** A node of a syntax tree, as far as it is used. */
interface SyntaxNode {
  readonly type: string;
  readonly start: number;
  readonly end: number;
  readonly callee?: SyntaxNode;
  readonly object?: SyntaxNode;
  readonly property?: { readonly name?: string };
  readonly key?: { readonly name?: string };
  readonly value?: SyntaxNode | string;
}

/**
 * Leaves out of `libs/contracts` what no browser reads: descriptions and examples, which are for the OpenAPI document,
 * and contracts of services, except for their names.
 */
export function forTheBrowser(): Plugin {
  return {
    name: "contracts-for-the-browser",
    apply: "build",
    enforce: "post",
    transform: {
      filter: { id: /[\\/]contracts[\\/]src[\\/]/ },
      handler(code, id) {
        if (id.endsWith("/contracts/src/mesh.ts"))
          return { code: `export const serviceNames = ${JSON.stringify(serviceNames)};`, map: null };
        let rest = code;
        // From the end, so that positions before it stay.
        for (const { from, to } of documentationIn(this.parse(code), code).toReversed())
          rest = rest.slice(0, from) + rest.slice(to);
        return { code: rest, map: null };
      },
    },
  };
}

/** The places of documentation, in their order; what is inside of another is part of it. */
function documentationIn(tree: object, code: string): { readonly from: number; readonly to: number }[] {
  const found: { from: number; to: number }[] = [];
  const visit = (part: unknown): void => {
    if (typeof part !== "object" || part === null) return;
    const { type, start, end, callee, key, value } = part as SyntaxNode;
    if (type === "CallExpression" && documenting.has(callee?.property?.name ?? "") && callee?.object) {
      found.push({ from: callee.object.end, to: end });
      visit(callee.object);
    } else if (type === "Property" && isLeftOut(key?.name ?? "", value)) {
      const comma = /^\s*,/.exec(code.slice(end))?.[0].length ?? 0;
      found.push({ from: start, to: end + comma });
    } else for (const member of Object.values(part)) visit(member);
  };
  visit(tree);
  return found.sort((one, other) => one.from - other.from);
}

function isLeftOut(name: string, value: SyntaxNode | string | undefined): boolean {
  if (typeof value !== "object") return false;
  return texts.has(name) ? isText(value) : servers.has(name) && value.type === "ArrayExpression";
}

function isText(value: SyntaxNode): boolean {
  return value.type === "TemplateLiteral" || (value.type === "Literal" && typeof value.value === "string");
}

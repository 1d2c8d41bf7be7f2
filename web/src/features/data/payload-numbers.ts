import type { DataRecord } from "@devmesh/contracts/model/data-record";

/** Maximum depth of members with numbers. */
const deepest = 4;

/** The numbers in a payload by the path of their member. */
export function numbersOf({ message, encoding }: DataRecord): ReadonlyMap<string, number> {
  const found = new Map<string, number>();
  if (encoding !== undefined) return found;
  const text = message.trim();
  // `+21.5`, `021` and `.5` are no JSON, but what devices send.
  if (/^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i.test(text)) {
    const value = Number(text);
    return Number.isFinite(value) ? found.set("value", value) : found;
  }
  if (!text.startsWith("{") && !text.startsWith("[")) return found;
  try {
    gather(JSON.parse(text), "", 0, found);
  } catch {
    // Text that is no JSON holds no numbers.
  }
  return found;
}

function gather(value: unknown, path: string, depth: number, found: Map<string, number>): void {
  if (typeof value === "number" && Number.isFinite(value)) found.set(path || "value", value);
  if (typeof value !== "object" || value === null || depth >= deepest) return;
  for (const [name, member] of Object.entries(value)) {
    gather(member, path === "" ? name : `${path}.${name}`, depth + 1, found);
  }
}

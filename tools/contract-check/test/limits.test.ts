import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { api } from "@devmesh/contracts/rest/api";
import type { RouteDeclaration } from "@devmesh/contracts/rest/route";
import { ServiceEnv } from "@devmesh/service-kit/process/env";
import { expect, test } from "@jest/globals";
import { z } from "zod";

const root = join(import.meta.dirname, "../../..");
const document = readFileSync(join(root, "docs/limits.md"), "utf8");

/** The variables of all services that hold a number, with their schemas; a port bounds nothing. */
async function numbersOfServices(): Promise<Map<string, z.ZodType>> {
  const numbers = new Map<string, z.ZodType>();
  for (const service of readdirSync(join(root, "services"))) {
    const module: Record<string, unknown> = await import(
      pathToFileURL(join(root, "services", service, "src/env.ts")).href
    );
    const schema = Object.values(module).find((exported) => exported instanceof z.ZodObject);
    for (const [name, type] of Object.entries((schema?.shape ?? {}) as Record<string, z.ZodType>))
      if (
        !(name in ServiceEnv.shape) &&
        name !== "PORT" &&
        typeof type.safeParse(undefined).data === "number"
      )
        numbers.set(name, type);
  }
  return numbers;
}

test("each number that can be set is in limits.md, with its default", async () => {
  const numbers = await numbersOfServices();
  expect(numbers.size).toBeGreaterThan(20);
  const documented = new Map(
    [...document.matchAll(/\| `([A-Z_]+)` (\S+) \|/g)].map(([, name, said]) => [name, said]),
  );
  expect([...documented.keys()].sort()).toEqual([...numbers.keys()].sort());
  for (const [name, type] of numbers)
    expect({ name, value: type.parse(documented.get(name)) }).toEqual({ name, value: type.parse(undefined) });
});

test("each reason of a limit is in limits.md, and each reason there exists", () => {
  const errors = readFileSync(join(root, "docs/errors.md"), "utf8");
  const rows = [...errors.matchAll(/<\/a>`(\w+)` \| (\d+) \|/g)].map(([, reason = "", status]) => ({
    reason,
    status,
  }));
  const limits = rows.filter(({ status }) => ["413", "429", "431"].includes(status ?? ""));
  expect(limits.length).toBeGreaterThan(8);
  for (const { reason } of limits) expect(document).toContain(`\`${reason}\``);
  const named = [...document.matchAll(/\b[45]\d\d `(\w+)`/g)].map(([, reason]) => reason);
  expect(rows.map(({ reason }) => reason)).toEqual(expect.arrayContaining(named));
});

test("each cost that a route declares is in limits.md", () => {
  const costs = Object.entries<RouteDeclaration>(api).flatMap(([operation, { cost }]) =>
    cost === undefined ? [] : [`| \`${operation}\` | ${cost.of} | ${cost.tokens} |`],
  );
  const documented = document.match(/^\| `\w+` \| .* \| \d+ \|$/gm);
  expect(documented).toEqual(costs);
});

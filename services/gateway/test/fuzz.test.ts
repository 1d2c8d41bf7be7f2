import { api } from "@devmesh/contracts/rest/api";
import { Problem } from "@devmesh/contracts/rest/problem";
import type { RouteDeclaration } from "@devmesh/contracts/rest/route";
import { afterAll, beforeAll, expect, test } from "@jest/globals";
import fc from "fast-check";
import { secrets } from "./fakes.ts";
import { type Fixture, startFixture } from "./gateway-fixture.ts";

let mesh: Fixture;
beforeAll(async () => {
  mesh = await startFixture();
});
afterAll(async () => mesh[Symbol.asyncDispose]());

const routes: Readonly<Record<string, RouteDeclaration>> = api;
const names = [...new Set(Object.values(routes).flatMap(({ query }) => Object.keys(query?.shape ?? {})))];
const word = fc.oneof(
  fc.string({ unit: "binary", maxLength: 20 }),
  fc.constantFrom(
    "",
    "0",
    "-1",
    "5001",
    "999999999999999",
    "true",
    "pump",
    "2026-01-01T00:00:00Z",
    "\0",
    "9999-12-31T23:59:59-23:59",
  ),
);
const queryString = fc
  .array(fc.tuple(fc.constantFrom(...names, "other"), word), { maxLength: 4 })
  .map((pairs) => pairs.map(([name, value]) => `${name}=${wellFormed(value)}`).join("&"));
const body = fc.oneof(
  fc.jsonValue({ maxDepth: 4 }).map((value) => JSON.stringify(value)),
  fc.string({ unit: "binary", maxLength: 40 }),
  fc
    .dictionary(
      fc.constantFrom("id", "name", "acl", "shadow", "meta", "expires_at", "device_id", "x"),
      fc.jsonValue({ maxDepth: 3 }),
    )
    .map((value) => JSON.stringify(value)),
);

function wellFormed(value: string): string {
  return encodeURIComponent(value.toWellFormed());
}

test("no path, query or body of any kind brings the gateway to answer 500", async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.constantFrom(...Object.keys(routes)),
      fc.array(word, { minLength: 2, maxLength: 2 }),
      queryString,
      body,
      async (operation, params, query, text) => {
        const route = routes[operation] as RouteDeclaration;
        const path = route.path.replaceAll(/:[a-z]+/g, () => wellFormed(params.shift() ?? "") || "x");
        const kind = route.auth?.[0];
        const answer = await mesh.fetch(`${path}?${query}`, {
          method: route.method.toUpperCase(),
          key: null,
          headers: {
            ...(kind !== undefined && { authorization: `Bearer ${secrets[kind]}` }),
            "content-type": "application/json",
          },
          ...(route.body && { body: text.toWellFormed() }),
        });
        const said = await answer.text();
        expect({ status: answer.status < 500, said }).toEqual({ status: true, said });
        if (answer.status >= 400) Problem.parse(JSON.parse(said));
      },
    ),
    { numRuns: 600 },
  );
});

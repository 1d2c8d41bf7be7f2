import { expect, test } from "@jest/globals";
import type { ContractDeclaration } from "../src/contract.ts";
import { codes } from "../src/contract.ts";
import { brokerClients, mesh } from "../src/mesh.ts";
import { api } from "../src/rest/api.ts";
import type { RouteDeclaration } from "../src/rest/route.ts";
import type { ServiceDeclaration } from "../src/topology.ts";

const services = Object.entries<ServiceDeclaration>(mesh);
const routes = Object.entries<RouteDeclaration>(api);
const contracts = services.flatMap(([, { serves }]): ContractDeclaration[] => (serves ? [serves] : []));

test("a service serves the contract of its own name", () => {
  for (const [name, { serves }] of services) if (serves) expect(serves.service).toBe(name);
});

test("every method has a caller, and every call goes to a contract that is served", () => {
  const called = new Set(
    services.flatMap(([, service]) =>
      service.calls.flatMap(({ contract, methods }) =>
        methods.map((method) => `${contract.service}.${method}`),
      ),
    ),
  );
  const served = contracts.flatMap(({ service, methods }) =>
    Object.keys(methods).map((method) => `${service}.${method}`),
  );
  expect([...called].sort()).toEqual(served.sort());
});

test("every event that is heard is published by its service, every queue has one consumer", () => {
  const publishers = Object.entries<ServiceDeclaration>(brokerClients);
  for (const [, { subscribes }] of services) {
    for (const { events, names } of subscribes) {
      const publisher = publishers.find(([name]) => name === events.service)?.[1];
      expect(Object.keys(publisher?.publishes?.events ?? {})).toEqual(expect.arrayContaining([...names]));
    }
  }
  for (const queue of new Set(services.flatMap(([, { produces }]) => produces))) {
    expect(services.filter(([, { consumes }]) => consumes.includes(queue)).length).toBe(1);
  }
});

test("a reason means the same code wherever it is declared", () => {
  const meaning = new Map<string, string>();
  for (const { methods } of contracts) {
    for (const { errors } of Object.values(methods)) {
      for (const [reason, { code, when }] of Object.entries(errors)) {
        expect(codes).toContain(code);
        expect(reason).toMatch(/^[a-z]+(_[a-z]+)*$/);
        expect(when).toMatch(/^[A-Z`].*\.$/);
        expect([reason, meaning.get(reason) ?? code]).toEqual([reason, code]);
        meaning.set(reason, code);
      }
    }
  }
});

test("no two routes answer the same request, and only gateway calls stand behind them", () => {
  const seen = new Set<string>();
  for (const [, { method, path, aliases = [] }] of routes) {
    for (const one of [path, ...aliases]) {
      const key = `${method} ${one.replaceAll(/:\w+/g, ":")}`;
      expect(seen).not.toContain(key);
      seen.add(key);
    }
  }
  const allowed = new Set(
    (mesh.gateway as ServiceDeclaration).calls.flatMap(({ contract, methods }) =>
      methods.map((method) => `${contract.service}.${method}`),
    ),
  );
  for (const [, { calls }] of routes) {
    for (const { contract, methods } of calls) {
      for (const method of methods) expect(allowed).toContain(`${contract.service}.${method}`);
    }
  }
});

test("a DELETE that is carried out twice succeeds: its error says that it was done", () => {
  for (const [operation, { method, calls }] of routes) {
    if (method !== "delete") continue;
    for (const { contract, methods } of calls) {
      for (const name of methods) {
        const { idempotent, errors } = contract.methods[name] ?? { errors: {} };
        const absences = Object.values(errors).filter(({ code }) => code === "not_found");
        expect([operation, idempotent, absences.map(({ meansDone }) => meansDone)]).toEqual([
          operation,
          true,
          [true],
        ]);
      }
    }
  }
});

test("only an idempotent method with nothing to say has an error that means that it was done", () => {
  for (const { methods } of contracts) {
    for (const [name, { idempotent, out, errors }] of Object.entries(methods)) {
      if (!Object.values(errors).some(({ meansDone }) => meansDone)) continue;
      expect([name, idempotent, out.safeParse({}).success]).toEqual([name, true, true]);
    }
  }
});

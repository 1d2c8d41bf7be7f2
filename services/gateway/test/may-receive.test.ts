import { Acl } from "@devmesh/contracts/model/acl";
import { diagnosisFrames } from "@devmesh/contracts/model/diagnostics";
import { expect, test } from "@jest/globals";
import { mayReceive } from "../src/notifications/may-receive.ts";

const received = (acl: Partial<Acl>, name: string, data = {}) =>
  mayReceive(Acl.parse(acl), { id: "pump", name, data });

test.each([
  ["/state/reported/online", true],
  ["/state/reported", true],
  ["/state", true],
  ["/state/reported/onlin", false],
  ["/state/reported/online/x", false],
  ["/state/desired", false],
])("presence with read %s: %s", (pointer, expected) => {
  expect(received({ read: [pointer] }, "online")).toBe(expected);
  expect(received({ read: [pointer] }, "offline")).toBe(expected);
});

test("calls of listed functions only", () => {
  expect(received({ rpc: ["Sum"] }, "rpc.in.Sum")).toBe(true);
  expect(received({ rpc: ["Sum"] }, "rpc.in.Sum2")).toBe(false);
  expect(received({ rpc: ["Sum"] }, "rpc.out.Sum")).toBe(false);
});

test("records that a named query finds", () => {
  const acl = { queries: { temperature: { topic: "temp/#" } } };
  expect(received(acl, "data", { topic: "db/pump/temp/1" })).toBe(true);
  expect(received(acl, "data", { topic: "db/other/temp/1" })).toBe(false);
  expect(received(acl, "data", { topic: "db/pump/humidity" })).toBe(false);
  expect(received(acl, "data")).toBe(false);
});

test("of a deleted device nothing but `deleted`; never the account or diagnostics, nor a device that is not cut", () => {
  expect(mayReceive(undefined, { id: "pump", name: "deleted", data: {} })).toBe(true);
  expect(mayReceive(undefined, { id: "pump", name: "online", data: {} })).toBe(false);
  for (const name of ["created", "updated", "throttled", "keys", "customers", "gap", ...diagnosisFrames])
    expect(received({ read: ["/state"] }, name)).toBe(false);
});

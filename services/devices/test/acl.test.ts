import { type Acl, defaultAcl } from "@devmesh/contracts/model/acl";
import type { JsonObject } from "@devmesh/contracts/model/json";
import { cutToPointers, pointerTree } from "@devmesh/contracts/model/pointer-tree";
import { ViolationList } from "@devmesh/contracts/model/violation";
import type { Principal } from "@devmesh/contracts/principal";
import { describe, expect, test } from "@jest/globals";
import fc from "fast-check";
import { checkWrite } from "../src/acl/check-write.ts";
import { mayAccess, unwritableMembers } from "../src/acl/principal-rights.ts";
import { pointerInto } from "../src/json-member.ts";
import type { Presence } from "../src/presence.ts";
import { describeDeviceFor } from "../src/registry/device-view.ts";
import { mergePatch } from "../src/shadow/apply-patch.ts";
import { emptyShadow, type StoredShadow } from "../src/shadow/stored-shadow.ts";
import type { StoredDevice } from "../src/store/device-store.ts";
import {
  anyDocument,
  anyPatch,
  anyPath,
  isWithin,
  type Nodes,
  nodesOf,
  objectOf,
  type Path,
  pathOf,
  pathText,
} from "./json-nodes.ts";

const pointerOf = (path: Path) => path.reduce<string>((pointer, name) => pointerInto(pointer, name), "");
const anyPaths = fc.array(anyPath, { maxLength: 3 });

const allAbout = (text: string, covered: readonly Path[]) =>
  covered.some((path) => isWithin(text, pathText(path)));

describe("pointers, against a second statement of their rules", () => {
  test("a cut holds all covered nodes, the objects above them, and nothing else", () => {
    fc.assert(
      fc.property(anyDocument, anyPaths, (document, paths) => {
        const covered = new Map([...nodesOf(document)].filter(([text]) => allAbout(text, paths)));
        const cut = cutToPointers(document, pointerTree(paths.map(pointerOf)));
        expect(cut ?? {}).toEqual(objectOf(covered));
        expect(cut === undefined).toBe(covered.size === 0);
      }),
      { numRuns: 1_000 },
    );
  });

  test("a write that is let through changes nothing outside the pointers but objects on the way to what it sets", () => {
    const refusals = { some: 0, none: 0 };
    fc.assert(
      fc.property(anyDocument, anyPatch, anyPaths, (document, patch, paths) => {
        const violations = new ViolationList();
        checkWrite(patch, document, pointerTree(paths.map(pointerOf)), "", violations);
        if (violations.any) {
          refusals.some++;
          return;
        }
        refusals.none++;
        const before = nodesOf(document);
        const after = nodesOf(mergePatch(document, patch));
        const outside = (nodes: Nodes) => new Map([...nodes].filter(([text]) => !allAbout(text, paths)));
        const kept = outside(after);
        for (const [text, node] of kept) {
          const leadsToCovered = [...after.keys()].some(
            (below) => isWithin(below, text) && allAbout(below, paths),
          );
          if (node.kind === "object" && !before.has(text) && leadsToCovered) kept.delete(text);
        }
        expect(kept).toEqual(outside(before));
      }),
      { numRuns: 3_000 },
    );
    expect(Math.min(refusals.some, refusals.none)).toBeGreaterThan(100);
  });

  test("a write that is refused would have changed something outside, or tried to", () => {
    fc.assert(
      fc.property(anyDocument, anyPatch, anyPaths, (document, patch, paths) => {
        const violations = new ViolationList();
        checkWrite(patch, document, pointerTree(paths.map(pointerOf)), "", violations);
        // Each pointer names a member of the patch, or its top, that no pointer covers.
        for (const pointer of violations.pointers) {
          expect(
            paths.some((path) => pointer === pointerOf(path) || pointer.startsWith(`${pointerOf(path)}/`)),
          ).toBe(false);
          expect([...nodesOf(patch).keys()].map((text) => pointerOf(pathOf(text))).concat("")).toContain(
            pointer,
          );
        }
      }),
      { numRuns: 500 },
    );
  });
});

const stored: StoredShadow = {
  ...emptyShadow(0),
  desired: { app: { on: true }, other: 1 },
  reported: { app: 7 },
  tags: { t: 1 },
};
const acl = (write: string[]): Acl => ({ ...defaultAcl, write });
const unwritable = (principal: Principal, patch: unknown, write = defaultAcl.write, shadow = stored) =>
  unwritableMembers(principal, acl(write), patch as JsonObject, shadow);

const publicKey: Principal = { kind: "public_key", device_id: "d" };
const deviceKey: Principal = { kind: "device_key", device_id: "d" };
const device: Principal = { kind: "device", device_id: "d" };

describe("writing with a public key", () => {
  test("covered members are written through their parents, and the version may be named as a condition", () => {
    expect(
      unwritable(publicKey, { shadow: { state: { desired: { app: { on: false } } }, version: 4 } }),
    ).toEqual([]);
    expect(unwritable(publicKey, { shadow: { state: { desired: { app: null } } } })).toEqual([]);
    expect(unwritable(publicKey, {})).toEqual([]);
    expect(unwritable(publicKey, { shadow: { state: { desired: {} } } })).toEqual([]);
  });

  test("every member outside is listed, known or not, beside those that are covered", () => {
    const patch = {
      name: "x",
      acl: {},
      token: "t",
      shadow: {
        state: { desired: { app: { on: 1 }, other: 2, new: null }, reported: {}, delta: {} },
        tags: {},
        timestamp: 1,
      },
    };
    expect(unwritable(publicKey, patch).sort()).toEqual(
      [
        "/name",
        "/acl",
        "/token",
        "/shadow/state/desired/other",
        "/shadow/state/desired/new",
        "/shadow/state/reported",
        "/shadow/state/delta",
        "/shadow/tags",
        "/shadow/timestamp",
      ].sort(),
    );
  });

  test.each([
    [{ shadow: null }, "/shadow"],
    [{ shadow: { state: null } }, "/shadow/state"],
    [{ shadow: { state: { desired: null } } }, "/shadow/state/desired"],
    [{ shadow: { state: { desired: [] } } }, "/shadow/state/desired"],
    [{ shadow: [] }, "/shadow"],
    [{ shadow: "x" }, "/shadow"],
  ])("%j would replace what others own", (patch, pointer) => {
    expect(unwritable(publicKey, patch)).toEqual([pointer]);
  });

  test("a whole section is replaced only with a pointer to the section itself", () => {
    expect(unwritable(publicKey, { shadow: { state: { desired: null } } }, ["/state/desired"])).toEqual([]);
    expect(unwritable(publicKey, { shadow: { tags: null } }, ["/tags"])).toEqual([]);
  });

  test("a scalar or array on the way is not merged away, and no empty object is left on the way", () => {
    const write = ["/state/reported/app/x", "/state/desired/new/x"];
    const reported = { shadow: { state: { reported: { app: { x: 1 } } } } };
    expect(unwritable(publicKey, reported, write)).toEqual(["/shadow/state/reported/app"]);
    const list = { ...stored, reported: { app: [1] } };
    expect(unwritable(publicKey, reported, write, list)).toEqual(["/shadow/state/reported/app"]);
    const fresh = (value: unknown) => ({ shadow: { state: { desired: { new: value } } } });
    expect(unwritable(publicKey, fresh({ x: 1 }), write)).toEqual([]);
    expect(unwritable(publicKey, fresh({}), write)).toEqual(["/shadow/state/desired/new"]);
    expect(unwritable(publicKey, fresh({ x: null }), write)).toEqual(["/shadow/state/desired/new"]);
  });

  test("names that only look alike are not covered", () => {
    const desired = (members: object) => ({ shadow: { state: { desired: members } } });
    expect(
      unwritable(publicKey, desired({ App: 1, "app ": 1, app2: 1, "app/x": 1, "/app": 1 })),
    ).toHaveLength(5);
    expect(
      unwritable(publicKey, JSON.parse('{"shadow":{"state":{"desired":{"__proto__":{"app":1}}}}}')),
    ).toEqual(["/shadow/state/desired/__proto__"]);
    expect(unwritable(publicKey, desired({ "a/b": 1 }), ["/state/desired/a~1b"])).toEqual([]);
    expect(unwritable(publicKey, desired({ a: { b: 1 } }), ["/state/desired/a~1b"])).toEqual([
      "/shadow/state/desired/a",
    ]);
    expect(unwritable(publicKey, desired({ toString: 1 }), [])).toEqual(["/shadow/state"]);
  });

  test("a body nested without end is judged as far as the pointers reach", () => {
    const deep = JSON.parse(
      `{"shadow":{"state":{"desired":${'{"a":'.repeat(50_000)}1${"}".repeat(50_000)}}}}`,
    );
    expect(unwritable(publicKey, deep)).toEqual(["/shadow/state/desired/a"]);
  });

  test("very many offending members are answered in bounds", () => {
    const many = Object.fromEntries(Array.from({ length: 50_000 }, (_, at) => [`m${at}`, 1]));
    expect(unwritable(publicKey, { shadow: { state: { desired: many } } })).toHaveLength(500);
  });
});

describe("writing with other keys", () => {
  test("a device key writes the app sections and nothing else", () => {
    const both = { shadow: { state: { desired: { app: { a: 1 } }, reported: { app: null } } } };
    expect(unwritable(deviceKey, both, [])).toEqual([]);
    expect(
      unwritable(deviceKey, { name: "x", shadow: { state: { desired: { other: 1 } }, tags: {} } }),
    ).toEqual(["/name", "/shadow/state/desired/other", "/shadow/tags"]);
  });

  test("the device itself writes desired, reported and the version, nothing else", () => {
    const patch = { shadow: { state: { desired: null, reported: { a: 1 } }, version: 1 } };
    expect(unwritable(device, patch, [])).toEqual([]);
    expect(unwritable(device, { name: "x", acl: {}, shadow: { tags: { a: 1 }, metadata: {} } })).toEqual([
      "/name",
      "/acl",
      "/shadow/tags",
      "/shadow/metadata",
    ]);
  });

  test("a master key writes whatever the body's rules allow; a customer key mayAccess no device", () => {
    expect(unwritable({ kind: "master" }, { anything: 1 })).toEqual([]);
    expect(mayAccess({ kind: "master" }, "d")).toBe(true);
    expect(mayAccess({ kind: "customer", customer_id: "d" }, "d")).toBe(false);
    expect([mayAccess(publicKey, "d"), mayAccess(publicKey, "D"), mayAccess(device, "e")]).toEqual([
      true,
      false,
      false,
    ]);
  });
});

describe("reading", () => {
  const presence: Presence = { isOnline: () => true, lastSeen: () => null };
  const read = (principal: Principal, pointers: string[], shadow = stored) => {
    const seen: StoredDevice = {
      id: "d",
      name: "secret name",
      acl: { ...defaultAcl, read: pointers },
      delta_metadata: true,
      shadow: { ...emptyShadow(0), ...shadow },
      created_at: 0,
      last_seen: null,
      revision: 1,
      position: "1",
    };
    return describeDeviceFor(principal, seen, presence);
  };

  test("a public key sees what its pointers cover, online only if readable, a side with nothing absent", () => {
    expect(read(publicKey, defaultAcl.read)).toEqual({
      id: "d",
      shadow: { state: { desired: { app: { on: true } }, reported: { app: 7, online: true } } },
    });
    expect(read(publicKey, ["/state/reported/online"])).toEqual({
      id: "d",
      shadow: { state: { reported: { online: true } } },
    });
    expect(read(publicKey, ["/state/desired/none"])).toEqual({ id: "d", shadow: { state: {} } });
    expect(read(publicKey, [])).toEqual({ id: "d", shadow: { state: {} } });
    expect(read(publicKey, ["/tags", "/version"])).toEqual({
      id: "d",
      shadow: { state: {}, tags: { t: 1 }, version: 0 },
    });
  });

  test("a pointer to what every object inherits, or into an array, shows nothing", () => {
    expect(
      read(publicKey, ["/toString", "/state/constructor", "/__proto__", "/state/desired/__proto__/x"]),
    ).toEqual({
      id: "d",
      shadow: { state: {} },
    });
    const list = { ...stored, reported: { app: [1, 2] } };
    expect(read(publicKey, ["/state/reported/app/0"], list)).toEqual({
      id: "d",
      shadow: { state: {} },
    });
  });

  test("a device key sees both app sections, empty ones where there are none", () => {
    expect(read(deviceKey, [])).toEqual({
      id: "d",
      shadow: { state: { desired: { app: { on: true } }, reported: { app: 7 } } },
    });
    const none = { ...stored, desired: {}, reported: {} };
    expect(read(deviceKey, [], none)).toEqual({
      id: "d",
      shadow: { state: { desired: { app: {} }, reported: { app: {} } } },
    });
  });

  test("a device reads its whole state but neither tags nor name", () => {
    const seen = read(device, []);
    expect(Object.keys(seen)).toEqual(["id", "shadow"]);
    expect(seen.shadow).toEqual({
      state: {
        desired: stored.desired,
        reported: { app: 7, online: true },
        delta: { app: { on: true }, other: 1 },
      },
      metadata: stored.metadata,
      version: 0,
      timestamp: 0,
    });
  });
});

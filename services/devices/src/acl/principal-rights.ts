import type { Acl } from "@devmesh/contracts/model/acl";
import type { JsonObject } from "@devmesh/contracts/model/json";
import { type PointerTree, pointerTree } from "@devmesh/contracts/model/pointer-tree";
import { ViolationList } from "@devmesh/contracts/model/violation";
import type { Principal } from "@devmesh/contracts/principal";
import { pointerInto } from "../json-member.ts";
import type { StoredShadow } from "../shadow/stored-shadow.ts";
import { checkWrite } from "./check-write.ts";

/** What a device key reads and writes (api.md, Device key). */
const appSections = ["/state/desired/app", "/state/reported/app"];
/** What a device writes over its own connection (api.md, MQTT). */
const stateSections = ["/state/desired", "/state/reported"];
/** What a device reads of itself: all but the tags, which are never sent to it (api.md, Device). */
const deviceSections = ["/state", "/metadata", "/version", "/timestamp"];

/** Whether the principal may access the device at all: a master key every one, a customer key none. */
export function mayAccess(principal: Principal, deviceId: string): boolean {
  if (principal.kind === "master") return true;
  return principal.kind !== "customer" && principal.device_id === deviceId;
}

/** The parts of the shadow that a principal reads; null for all of the device. */
export function readableParts(principal: Principal, acl: Acl): PointerTree | null {
  return partsOf(principal, acl.read, deviceSections);
}

function partsOf(
  { kind }: Principal,
  ofPublicKey: readonly string[],
  ofDevice: readonly string[],
): PointerTree | null {
  switch (kind) {
    case "master":
      return null;
    case "device_key":
      return pointerTree(appSections);
    case "public_key":
      return pointerTree(ofPublicKey);
    case "device":
      return pointerTree(ofDevice);
    case "customer":
      return pointerTree([]);
  }
}

/**
 * JSON pointers to the members of a body that the principal may not write. Every principal may name `shadow.version`,
 * which only makes the write conditional.
 */
export function unwritableMembers(
  principal: Principal,
  acl: Acl,
  patch: JsonObject,
  { desired, reported, tags }: StoredShadow,
): string[] {
  const shadowTree = partsOf(principal, acl.write, stateSections);
  if (shadowTree === null) return [];
  const violations = new ViolationList();
  const present = { shadow: { state: { desired, reported }, tags, version: 0 } };
  const tree = { covered: false, members: new Map([["shadow", withVersion(shadowTree)]]) };
  checkWrite(patch, present, tree, "", violations);
  return violations.pointers;
}

const versionPointer = pointerTree([pointerInto("", "version")]);

function withVersion({ covered, members }: PointerTree): PointerTree {
  return { covered, members: new Map([...versionPointer.members, ...members]) };
}

import type { Acl } from "@devmesh/contracts/model/acl";
import { DevicePatch } from "@devmesh/contracts/model/device";
import { isJsonObject, type JsonObject } from "@devmesh/contracts/model/json";
import type { ShadowPatch } from "@devmesh/contracts/model/shadow";
import { violationsOf } from "@devmesh/service-kit/errors";
import { Findings } from "@devmesh/service-kit/findings";
import { checkStructure } from "./shadow/structure.ts";

/** Bytes of compact JSON of an ACL: with it and the sections at their limits a device still fits into one reply. */
const aclBytes = 32_768;

/** Members of a shadow that the service computes, by their pointer in a body. */
const computed: ReadonlySet<string> = new Set([
  "/shadow/state/delta",
  "/shadow/metadata",
  "/shadow/timestamp",
]);

/** A body that keeps all rules, or everything in it that breaks one. */
export type CheckedBody = { readonly patch: DevicePatch } | { readonly findings: Findings };

/** Checks the body of `POST /devices/:id` against all rules that need no stored device. */
export function checkPatchBody(body: JsonObject): CheckedBody {
  const findings = new Findings();
  const parsed = DevicePatch.safeParse(body);
  if (!parsed.success) {
    for (const { pointer, detail } of violationsOf(parsed.error)) {
      findings.add(pointer, computed.has(pointer) ? "is computed and cannot be written" : detail);
    }
  }
  if (parsed.success) checkAcl(parsed.data.acl, findings);
  if (isJsonObject(body.shadow)) checkSections(body.shadow, findings);
  return parsed.success && !findings.any ? { patch: parsed.data } : { findings };
}

/** Checks what the schema of a new device leaves open. */
export function checkNewDevice(body: {
  readonly acl?: Acl | undefined;
  readonly shadow?: ShadowPatch | undefined;
}): Findings {
  const findings = new Findings();
  checkAcl(body.acl, findings);
  if (body.shadow) {
    checkSections(body.shadow, findings);
    const { version = 0 } = body.shadow;
    if (version !== 0) findings.add("/shadow/version", "is not 0, the version of a new shadow");
  }
  return findings;
}

function checkAcl(acl: Acl | undefined, findings: Findings): void {
  if (acl === undefined) return;
  const bytes = Buffer.byteLength(JSON.stringify(acl));
  if (bytes > aclBytes) findings.add("/acl", `has ${bytes} bytes; ${aclBytes} are allowed`);
}

function checkSections(
  shadow: { readonly state?: unknown; readonly tags?: unknown },
  findings: Findings,
): void {
  const { state, tags } = shadow;
  if (isJsonObject(tags)) checkStructure(tags, "/shadow/tags", findings);
  if (!isJsonObject(state)) return;
  const { desired, reported } = state;
  if (isJsonObject(desired)) checkStructure(desired, "/shadow/state/desired", findings);
  if (!isJsonObject(reported)) return;
  checkStructure(reported, "/shadow/state/reported", findings);
  if (Object.hasOwn(reported, "online")) {
    findings.add("/shadow/state/reported/online", "is added from presence and cannot be written");
  }
}

import type { Acl } from "@devmesh/contracts/model/acl";
import { DevicePatch } from "@devmesh/contracts/model/device";
import type { JsonObject } from "@devmesh/contracts/model/json";
import type { ShadowPatch } from "@devmesh/contracts/model/shadow";
import { checkShadowOf } from "@devmesh/contracts/model/shadow-structure";
import { violationsOf } from "@devmesh/service-kit/errors";
import { Findings } from "@devmesh/service-kit/findings";

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
  checkShadowOf(body, findings);
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
    checkShadowOf(body, findings);
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

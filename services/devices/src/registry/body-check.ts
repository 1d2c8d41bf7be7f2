import type { Acl } from "@devmesh/contracts/model/acl";
import { DevicePatch } from "@devmesh/contracts/model/device";
import type { JsonObject } from "@devmesh/contracts/model/json";
import type { ShadowPatch } from "@devmesh/contracts/model/shadow";
import { checkShadowOf } from "@devmesh/contracts/model/shadow-structure";
import { ViolationList } from "@devmesh/contracts/model/violation";
import { deviceTopics } from "@devmesh/contracts/mqtt";
import { violationsOf } from "@devmesh/service-kit/errors";

/** Bytes of compact JSON of an ACL: a device at all its limits still fits into one reply. */
const aclBytes = 32_768;

/** Members of a shadow that the service computes, by their pointer in a body. */
const computed: ReadonlySet<string> = new Set([
  "/shadow/state/delta",
  "/shadow/metadata",
  "/shadow/timestamp",
]);

/** A valid body, or all its violations. */
export type CheckedBody = { readonly patch: DevicePatch } | { readonly violations: ViolationList };

/** Checks the body of `POST /devices/:id` against all rules that need no stored device. */
export function checkPatchBody(id: string, body: JsonObject): CheckedBody {
  const violations = new ViolationList();
  const parsed = DevicePatch.safeParse(body);
  if (!parsed.success) {
    for (const { pointer, detail } of violationsOf(parsed.error)) {
      violations.add(pointer, computed.has(pointer) ? "is computed and cannot be written" : detail);
    }
  }
  if (parsed.success) checkAcl(id, parsed.data.acl, violations);
  checkShadowOf(body, violations);
  return parsed.success && !violations.any ? { patch: parsed.data } : { violations };
}

/** Checks the rules that the schema of a new device does not express. */
export function checkNewDevice(body: {
  readonly id?: string | undefined;
  readonly acl?: Acl | undefined;
  readonly shadow?: ShadowPatch | undefined;
}): ViolationList {
  const violations = new ViolationList();
  checkAcl(body.id, body.acl, violations);
  if (body.shadow) {
    checkShadowOf(body, violations);
    const { version = 0 } = body.shadow;
    if (version !== 0) violations.add("/shadow/version", "is not 0, the version of a new shadow");
  }
  return violations;
}

function checkAcl(id: string | undefined, acl: Acl | undefined, violations: ViolationList): void {
  if (acl === undefined) return;
  // A topic as records show it would select nothing.
  const root = id === undefined ? null : deviceTopics.record(id, "");
  for (const [name, { topic, pointers }] of Object.entries(acl.queries)) {
    if (pointers !== undefined && /[+#]/.test(topic))
      violations.add(`/acl/queries/${name}/topic`, "must have no wildcards beside `pointers`");
    if (root !== null && `${topic}/`.startsWith(root))
      violations.add(`/acl/queries/${name}/topic`, `is relative to \`${root}\`: leave that out`);
  }
  const bytes = Buffer.byteLength(JSON.stringify(acl));
  if (bytes > aclBytes) violations.add("/acl", `has ${bytes} bytes; ${aclBytes} are allowed`);
}

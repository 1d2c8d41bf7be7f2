import { type ShadowPatch, shadowLimits } from "@devmesh/contracts/model/shadow";
import type { ViolationList } from "@devmesh/contracts/model/violation";
import type { StoredShadow } from "./stored-shadow.ts";

/**
 * Finds sections that the patch made larger than they may be: bytes of compact JSON of the merged section, in UTF-8.
 */
export function checkSectionSizes(shadow: StoredShadow, patch: ShadowPatch, violations: ViolationList): void {
  const { desiredBytes, reportedBytes, tagsBytes } = shadowLimits;
  const check = (section: unknown, pointer: string, limit: number) => {
    const bytes = Buffer.byteLength(JSON.stringify(section));
    if (bytes > limit) violations.add(pointer, `would have ${bytes} bytes; ${limit} are allowed`);
  };
  if (patch.state?.desired) check(shadow.desired, "/shadow/state/desired", desiredBytes);
  if (patch.state?.reported) check(shadow.reported, "/shadow/state/reported", reportedBytes);
  if (patch.tags) check(shadow.tags, "/shadow/tags", tagsBytes);
}

import { pointerToken } from "@devmesh/contracts/model/json-pointer";

/** The JSON pointer (RFC 6901) to a member, or an element, of what `pointer` points to. */
export function pointerInto(pointer: string, member: string | number): string {
  return `${pointer}${pointerToken(member)}`;
}

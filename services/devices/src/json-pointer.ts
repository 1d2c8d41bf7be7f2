import { pointerToken } from "@devmesh/contracts/model/json-pointer";
/** The JSON pointer (RFC 6901) to a member, or an element, of what `pointer` points to. */
export function pointerInto(pointer: string, member: string | number): string {
  return `${pointer}${pointerToken(member)}`;
}

/** The member names that a JSON pointer walks through; none for the empty pointer, which is the whole document. */
export function membersOf(pointer: string): readonly string[] {
  return pointer
    .split("/")
    .slice(1)
    .map((token) => token.replaceAll("~1", "/").replaceAll("~0", "~"));
}

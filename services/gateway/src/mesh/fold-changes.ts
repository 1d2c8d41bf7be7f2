import { keptChanges, type MeshChange, type MeshChanges } from "@devmesh/contracts/model/mesh-change";

/** Age, in milliseconds, up to which an entry takes up further changes of the same kind. */
const foldMs = 60_000;

/**
 * The changes with further ones, newest first, at most 50 in all. Changes of one key by one operation are one entry
 * while less than a minute lies between them, so that a job on 10,000 devices displaces nothing.
 */
export function foldChanges(changes: MeshChanges, added: readonly MeshChange[]): MeshChanges {
  let folded = [...changes];
  for (const change of added) {
    const same = folded.find((other) => belongTogether(other, change));
    if (same === undefined) folded.push(change);
    else folded = folded.map((other) => (other === same ? combined(other, change) : other));
  }
  const left: Record<keyof typeof keptChanges, number> = { ...keptChanges };
  return folded
    .sort((one, other) => Date.parse(other.at) - Date.parse(one.at))
    .filter(({ by }) => left[by.kind]-- > 0);
}

/** Whether changes are one entry: of one key by one operation, with less than a minute between them. */
export function belongTogether(one: MeshChange, other: MeshChange): boolean {
  return (
    one.operation === other.operation &&
    one.by.kind === other.by.kind &&
    one.by.id === other.by.id &&
    Math.abs(Date.parse(one.at) - Date.parse(other.at)) < foldMs
  );
}

/** Both as one entry. */
export function combined(one: MeshChange, other: MeshChange): MeshChange {
  const newer = Date.parse(one.at) > Date.parse(other.at) ? one : other;
  return { ...newer, count: one.count + other.count };
}

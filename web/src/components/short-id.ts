/** A long id by its end, in which ids made at the same time differ: "…5d3abddce2a2". */
export function shortId(id: string): string {
  return id.length > 16 ? `…${id.slice(-12)}` : id;
}

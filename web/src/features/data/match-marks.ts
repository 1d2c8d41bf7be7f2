/** A piece of a text, and whether it matches the filter. */
export interface TextPiece {
  /** Where it begins in the text. */
  readonly at: number;
  readonly text: string;
  readonly matches: boolean;
}

/** Splits a text at the matches of `filter`, case-sensitively as on the server. */
export function piecesOf(text: string, filter: string): TextPiece[] {
  if (filter === "") return [{ at: 0, text, matches: false }];
  const pieces: TextPiece[] = [];
  let from = 0;
  for (let at = text.indexOf(filter); at >= 0; at = text.indexOf(filter, from)) {
    if (at > from) pieces.push({ at: from, text: text.slice(from, at), matches: false });
    pieces.push({ at, text: filter, matches: true });
    from = at + filter.length;
  }
  if (from < text.length) pieces.push({ at: from, text: text.slice(from), matches: false });
  return pieces;
}

/** Maximum of characters of a payload in a row. */
const shownCharacters = 300;

/** The part of a payload in a row: its start, or the text around the first match after that. */
export function excerptOf(message: string, filter: string): string {
  if (message.length <= shownCharacters) return message;
  const match = filter === "" ? -1 : message.indexOf(filter);
  const from = match + filter.length > 60 ? Math.max(0, match - 20) : 0;
  const end = from + Math.max(shownCharacters, filter.length + 40);
  return `${from > 0 ? "…" : ""}${message.slice(from, end)}${end < message.length ? "…" : ""}`;
}

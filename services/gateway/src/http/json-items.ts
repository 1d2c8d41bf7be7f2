const quote = 0x22;
const comma = 0x2c;
const backslash = 0x5c;
const openBracket = 0x5b;
const closeBracket = 0x5d;
const openBrace = 0x7b;
const closeBrace = 0x7d;

/** Where the commas between JSON values stand; `items` are values with commas between, as `splitPage` gives them. */
function* separators(items: Uint8Array): Generator<number> {
  let depth = 0;
  for (let at = 0; at < items.length; at++) {
    switch (items[at]) {
      case quote:
        at = closingQuote(items, at + 1);
        break;
      case openBrace:
      case openBracket:
        depth++;
        break;
      case closeBrace:
      case closeBracket:
        depth--;
        break;
      case comma:
        if (depth === 0) yield at;
        break;
    }
  }
}

function closingQuote(items: Uint8Array, from: number): number {
  for (let at = items.indexOf(quote, from); at >= 0; at = items.indexOf(quote, at + 1)) {
    let escapes = 0;
    while (items[at - 1 - escapes] === backslash) escapes++;
    if (escapes % 2 === 0) return at;
  }
  return items.length;
}

/** How many JSON values there are, found without parsing them. */
export function countItems(items: Uint8Array): number {
  if (items.length === 0) return 0;
  let count = 1;
  for (const _ of separators(items)) count++;
  return count;
}

/** The values one a line, each line closed; compact JSON holds no line break of its own. */
export function asLines(items: Uint8Array): Uint8Array {
  if (items.length === 0) return items;
  const lines = Buffer.allocUnsafe(items.length + 1);
  lines.set(items);
  const lineFeed = 0x0a;
  for (const at of separators(items)) lines[at] = lineFeed;
  lines[items.length] = lineFeed;
  return lines;
}

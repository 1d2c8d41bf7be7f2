/** A piece of a line: plain, to be read literally, or leading somewhere. */
export type ProsePiece =
  | { readonly kind: "text" | "code"; readonly text: string }
  | { readonly kind: "link"; readonly text: string; readonly href: string };

/** A paragraph, which is one line, or a list of lines. */
export interface ProseBlock {
  readonly kind: "paragraph" | "list";
  readonly lines: readonly (readonly ProsePiece[])[];
}

/** Reads the Markdown that descriptions are written in: paragraphs, lists, code and links; all else is text. */
export function proseBlocks(markdown: string): ProseBlock[] {
  const blocks = markdown.split(/\n\s*\n/).filter((block) => block.trim() !== "");
  return blocks.map((block) => {
    const lines = block.trim().split("\n");
    return lines.every((line) => line.startsWith("- "))
      ? { kind: "list", lines: lines.map((line) => pieces(line.slice(2))) }
      : { kind: "paragraph", lines: [pieces(lines.join(" "))] };
  });
}

const marked = /`([^`]+)`|\[([^\]]+)\]\(((?:\/|https:\/\/)[^)\s]*)\)/g;

function pieces(line: string): ProsePiece[] {
  const found: ProsePiece[] = [];
  let end = 0;
  const text = (to: number) => {
    if (to > end) found.push({ kind: "text", text: line.slice(end, to) });
  };
  for (const match of line.matchAll(marked)) {
    text(match.index);
    end = match.index + match[0].length;
    const [, code, label = "", href = ""] = match;
    found.push(code === undefined ? { kind: "link", text: label, href } : { kind: "code", text: code });
  }
  text(line.length);
  return found;
}

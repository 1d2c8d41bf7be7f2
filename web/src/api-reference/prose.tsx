import { Anchor, Code, List, Text } from "@mantine/core";
import { type ProsePiece, proseBlocks } from "./prose-blocks.ts";

/** A description, with its lists, code and links. */
export function Prose({ text }: { readonly text: string }) {
  return proseBlocks(text).map(({ kind, lines }, block) =>
    kind === "list" ? (
      // biome-ignore lint/suspicious/noArrayIndexKey: the blocks of a text do not change
      <List key={block} size="sm">
        {lines.map((line, index) => (
          // biome-ignore lint/suspicious/noArrayIndexKey: nor do its lines
          <List.Item key={index}>
            <Line pieces={line} />
          </List.Item>
        ))}
      </List>
    ) : (
      // biome-ignore lint/suspicious/noArrayIndexKey: the blocks of a text do not change
      <Text key={block} size="sm">
        <Line pieces={lines[0] ?? []} />
      </Text>
    ),
  );
}

function Line({ pieces }: { readonly pieces: readonly ProsePiece[] }) {
  return pieces.map((piece, index) => {
    const key = `${index}`;
    if (piece.kind === "link")
      return (
        <Anchor key={key} href={piece.href} target="_blank" rel="noreferrer" underline="always" size="sm">
          {piece.text}
        </Anchor>
      );
    return piece.kind === "code" ? <Code key={key}>{piece.text}</Code> : piece.text;
  });
}

import { Code, Group, Stack, Text } from "@mantine/core";
import type { ReactNode } from "react";
import { CopyButton } from "./copy-button.tsx";

/** Properties of {@link CodeBlock}. */
interface CodeBlockProps {
  readonly label: string;
  /** Height above which it scrolls. */
  readonly maxHeight?: number | string;
  readonly children: ReactNode;
}

/** Code or JSON in a region that scrolls, and that the keyboard can reach. */
export function CodeBlock({ label, maxHeight = "none", children }: CodeBlockProps) {
  return (
    <Code
      block
      tabIndex={0}
      role="region"
      aria-label={label}
      mah={maxHeight}
      // Text for screen readers alone is positioned, and must scroll with its line.
      style={{ overflow: "auto", position: "relative" }}
    >
      {children}
    </Code>
  );
}

/** A text to be copied, such as a command or a key. */
export function Snippet({ label, text }: { readonly label: string; readonly text: string }) {
  return (
    <Stack gap={2}>
      <Group justify="space-between" gap="xs" wrap="nowrap">
        <Text size="sm" fw={500}>
          {label}
        </Text>
        <CopyButton text={text} what={label} />
      </Group>
      <CodeBlock label={label}>{text}</CodeBlock>
    </Stack>
  );
}

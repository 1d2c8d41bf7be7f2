import { Group, Stack, Text } from "@mantine/core";
import { CodeBlock } from "./code-block.tsx";
import { CopyButton } from "./copy-button.tsx";

/** A text to be copied, such as a command or a key. */
export function Snippet({ label, text }: { readonly label: string; readonly text: string }) {
  return (
    <Stack gap={2}>
      <Group justify="space-between" gap="xs">
        <Text size="sm" fw={500}>
          {label}
        </Text>
        <CopyButton text={text} what={label} />
      </Group>
      <CodeBlock label={label}>{text}</CodeBlock>
    </Stack>
  );
}

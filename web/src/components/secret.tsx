import { Code, Group } from "@mantine/core";
import { useDisclosure } from "@mantine/hooks";
import { Eye } from "lucide-react";
import { CopyButton } from "./copy-button.tsx";
import { IconButton } from "./icon-button.tsx";

/** The kind and the end of a secret, by which it is recognised. */
export function maskedSecret(secret: string): string {
  return `${secret.slice(0, 5)}…${secret.slice(-4)}`;
}

/** A secret to be copied, or shown and selected; `what` names it, as in "the key CI". */
export function Secret({ secret, what }: { readonly secret: string; readonly what: string }) {
  const [shown, { toggle }] = useDisclosure(false);
  return (
    <Group gap={2} wrap="nowrap">
      <Code style={{ userSelect: "all", whiteSpace: "nowrap" }}>{shown ? secret : maskedSecret(secret)}</Code>
      <IconButton label={`${shown ? "Hide" : "Show"} ${what}`} aria-pressed={shown} onClick={toggle}>
        <Eye size={16} />
      </IconButton>
      <CopyButton text={secret} what={what} />
    </Group>
  );
}

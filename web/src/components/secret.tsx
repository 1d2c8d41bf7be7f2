import { ActionIcon, Code, Group, Tooltip } from "@mantine/core";
import { Eye } from "lucide-react";
import { useState } from "react";
import { CopyButton } from "./copy-button.tsx";

/** A secret to be copied, or shown and selected; `what` names it, as in "the key CI". */
export function Secret({ secret, what }: { readonly secret: string; readonly what: string }) {
  const [shown, setShown] = useState(false);
  const action = `${shown ? "Hide" : "Show"} ${what}`;
  return (
    <Group gap={2} wrap="nowrap">
      <Code style={{ userSelect: "all", whiteSpace: "nowrap" }}>
        {shown ? secret : `${secret.slice(0, 5)}…${secret.slice(-4)}`}
      </Code>
      <Tooltip label={action}>
        <ActionIcon
          variant="subtle"
          color="gray"
          aria-label={action}
          aria-pressed={shown}
          onClick={() => setShown(!shown)}
        >
          <Eye size={16} />
        </ActionIcon>
      </Tooltip>
      <CopyButton text={secret} what={what} />
    </Group>
  );
}

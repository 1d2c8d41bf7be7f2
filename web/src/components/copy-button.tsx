import { ActionIcon, Tooltip, VisuallyHidden } from "@mantine/core";
import { Check, Copy } from "lucide-react";
import { useEffect, useState } from "react";
import { copyText } from "./copy-text.ts";

/** Time for which the result is shown, in milliseconds. */
const shownMs = 2_000;

/** Copies a text; `what` names it in the button's label, for example "the token". */
export function CopyButton({ text, what }: { readonly text: string; readonly what: string }) {
  const [outcome, setOutcome] = useState<"copied" | "refused" | null>(null);
  useEffect(() => {
    if (outcome === null) return;
    const timer = setTimeout(() => setOutcome(null), shownMs);
    return () => clearTimeout(timer);
  }, [outcome]);
  const copy = () => {
    copyText(text).then(
      () => setOutcome("copied"),
      () => setOutcome("refused"),
    );
  };
  const message =
    outcome === "copied"
      ? "Copied"
      : outcome === "refused"
        ? "The browser does not let this page copy"
        : null;
  return (
    <>
      <Tooltip label={message ?? `Copy ${what}`}>
        <ActionIcon
          variant="subtle"
          color={outcome === "copied" ? "teal" : "gray"}
          aria-label={`Copy ${what}`}
          onClick={copy}
        >
          {outcome === "copied" ? <Check size={16} /> : <Copy size={16} />}
        </ActionIcon>
      </Tooltip>
      <VisuallyHidden role="status">{message}</VisuallyHidden>
    </>
  );
}

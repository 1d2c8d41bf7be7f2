import { VisuallyHidden } from "@mantine/core";
import { useTimeout } from "@mantine/hooks";
import { Check, Copy } from "lucide-react";
import { useState } from "react";
import { IconButton } from "./icon-button.tsx";

/** Time for which the result is shown, in milliseconds. */
const shownMs = 2_000;

const messages = { copied: "Copied", refused: "The browser does not let this page copy" };

/** Copies a text; `what` names it in the button's label, for example "the token". */
export function CopyButton({ text, what }: { readonly text: string; readonly what: string }) {
  const [outcome, setOutcome] = useState<keyof typeof messages | null>(null);
  const { start: forget } = useTimeout(() => setOutcome(null), shownMs);
  const copy = async () => {
    setOutcome(
      await copyText(text).then(
        () => "copied" as const,
        () => "refused" as const,
      ),
    );
    forget();
  };
  const message = outcome && messages[outcome];
  return (
    <>
      <IconButton size="sm" label={`Copy ${what}`} tooltip={message ?? `Copy ${what}`} onClick={copy}>
        {outcome === "copied" ? <Check size={14} /> : <Copy size={14} />}
      </IconButton>
      <VisuallyHidden role="status">{message}</VisuallyHidden>
    </>
  );
}

/** Copies a text to the clipboard. Rejects if the browser refuses. */
async function copyText(text: string): Promise<void> {
  // Pages that came over plain HTTP from another machine have no `navigator.clipboard`.
  if (window.isSecureContext) return navigator.clipboard.writeText(text);
  const holder = document.createElement("textarea");
  holder.value = text;
  holder.setAttribute("readonly", "");
  holder.style.position = "fixed";
  holder.style.opacity = "0";
  const focused = document.activeElement;
  const parent = focused?.closest("[role=dialog]") ?? document.body;
  parent.append(holder);
  try {
    holder.select();
    if (!document.execCommand("copy")) throw new Error("the browser does not let this page copy");
  } finally {
    holder.remove();
    if (focused instanceof HTMLElement) focused.focus();
  }
}

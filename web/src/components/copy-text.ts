/** Copies a text to the clipboard. Rejects if the browser refuses. */
export async function copyText(text: string): Promise<void> {
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

const units = { s: "PT#S", min: "PT#M", h: "PT#H", d: "P#D" } as const;

/** A duration as people type it, "90 s", "5 min", "2 h" or "7 d", as ISO 8601; any other text as it is. */
export function typedDuration(text: string): string {
  const [, amount = "", unit = ""] = /^(\d+)\s*(s|min|h|d)$/.exec(text.trim()) ?? [];
  return amount === "" ? text.trim() : units[unit as keyof typeof units].replace("#", amount);
}

/** An ISO 8601 duration of one unit as people type it; any other as it is. */
export function durationAsTyped(duration: string): string {
  for (const [unit, form] of Object.entries(units)) {
    const [before = "", after = ""] = form.split("#");
    const amount = duration.slice(before.length, -after.length);
    if (duration === form.replace("#", amount) && /^\d+$/.test(amount)) return `${amount} ${unit}`;
  }
  return duration;
}

/** A time as a `datetime-local` field takes it, in the browser's zone; empty for none or what is no time. */
export function toLocalField(iso: string): string {
  const time = Date.parse(iso);
  if (Number.isNaN(time)) return "";
  const shifted = new Date(time - new Date(time).getTimezoneOffset() * 60_000);
  return shifted.toISOString().slice(0, 19);
}

/** The instant that a `datetime-local` field means, in ISO 8601; empty for none or what is no time. */
export function fromLocalField(value: string): string {
  const time = Date.parse(value);
  return Number.isNaN(time) ? "" : new Date(time).toISOString();
}

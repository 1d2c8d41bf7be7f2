/** A mail without its addresses. */
export interface MailContent {
  readonly subject: string;
  readonly text: string;
  readonly html: string;
}

const timeFormat = new Intl.DateTimeFormat("en-GB", {
  dateStyle: "long",
  timeStyle: "short",
  timeZone: "UTC",
  hourCycle: "h23",
});

/** `31 January 2026, 12:00 UTC`, from parts, since the separator differs between ICU versions. */
export function spellTime(time: Date): string {
  const part = Object.fromEntries(timeFormat.formatToParts(time).map(({ type, value }) => [type, value]));
  return `${part.day} ${part.month} ${part.year}, ${part.hour}:${part.minute} UTC`;
}

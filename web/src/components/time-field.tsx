import { Text, TextInput, type TextInputProps } from "@mantine/core";
import { CalendarClock } from "lucide-react";
import { useRef } from "react";
import { IconButton } from "./icon-button.tsx";
import { dateFormat } from "./locale.ts";

/** Properties of {@link TimeField}, and others of the input. */
interface TimeFieldProps extends Omit<TextInputProps, "onChange" | "value"> {
  readonly label: string;
  /** The label is in the field, for a row of filters. */
  readonly isInline?: true;
  /** As {@link timeFieldText} writes it, or what was typed. */
  readonly value?: string;
  /** `isPicked` for a time of the calendar, which is whole. */
  readonly onChange: (text: string, isPicked: boolean) => void;
}

/** A field for a time in the locale of the page and the zone of the browser; a native one has the browser's locale. */
export function TimeField({ value = "", label, isInline, onChange, ...input }: TimeFieldProps) {
  const calendar = useRef<HTMLInputElement>(null);
  return (
    <TextInput
      placeholder={timeFieldText(new Date(2_026, 10, 24, 15, 30).toISOString())}
      autoComplete="off"
      spellCheck={false}
      {...(isInline
        ? { "aria-label": label, leftSection: <Text size="xs">{label}</Text>, leftSectionWidth: 44 }
        : { label })}
      {...input}
      value={value}
      onChange={({ currentTarget }) => onChange(currentTarget.value, false)}
      rightSection={
        <>
          <IconButton size="sm" label={`${label}: calendar`} onClick={() => calendar.current?.showPicker()}>
            <CalendarClock size={14} />
          </IconButton>
          <input
            ref={calendar}
            type="datetime-local"
            step={1}
            tabIndex={-1}
            aria-hidden="true"
            // The calendar opens beneath it.
            style={{ position: "absolute", inset: 0, opacity: 0, pointerEvents: "none" }}
            onChange={({ currentTarget }) => {
              const time = Date.parse(currentTarget.value);
              if (!Number.isNaN(time)) onChange(timeFieldText(new Date(time).toISOString()), true);
            }}
          />
        </>
      }
    />
  );
}

const two = "2-digit";
const written = {
  calendar: "gregory",
  numberingSystem: "latn",
  year: "numeric",
  month: two,
  day: two,
  hour: two,
  minute: two,
  second: two,
} as const;

/** A time in ISO 8601 as the field shows it, such as "24.11.2026, 15:30:00"; empty if it is none. */
export function timeFieldText(iso: string): string {
  const time = Date.parse(iso);
  return Number.isNaN(time) ? "" : dateFormat(written).format(time);
}

const isoOrder = ["year", "month", "day", "hour", "minute", "second"];

/** The time in a text of the field, in ISO 8601: in the order of the locale, or as 2026-11-24 15:30. Null for none. */
export function timeInField(text: string): string | null {
  const numbers = text.match(/\d+/g)?.map(Number) ?? [];
  const isIso = /^\s*\d{4}-/.test(text);
  const order = isIso ? isoOrder : localeOrder();
  const part = (name: string) => numbers[order.indexOf(name)];
  const [year, month, day] = [part("year"), part("month"), part("day")];
  if (year === undefined || month === undefined || day === undefined || numbers.length > order.length)
    return null;
  const hour = part("hour") ?? 0;
  const half = isIso ? null : /\b([ap])\.?\s?m\b/i.exec(text)?.[1]?.toLowerCase();
  if (half && (hour < 1 || hour > 12)) return null;
  const hours = half ? (hour % 12) + (half === "p" ? 12 : 0) : hour;
  const [minute, second] = [part("minute") ?? 0, part("second") ?? 0];
  const time = new Date(year < 100 ? 2_000 + year : year, month - 1, day, hours, minute, second);
  const isThere = time.getMonth() === month - 1 && time.getDate() === day;
  if (!isThere || hours > 23 || minute > 59 || second > 59) return null;
  return time.toISOString();
}

/** Names of the numbers of {@link timeFieldText}, in their order. */
function localeOrder(): string[] {
  return dateFormat(written)
    .formatToParts(0)
    .flatMap(({ type }) => (isoOrder.includes(type) ? [type] : []));
}

/** What is wrong with a text of the field; null if nothing is, or it is empty. */
export function timeFieldFault(text: string): string | null {
  if (text.trim() === "" || timeInField(text) !== null) return null;
  return `Write it as ${dateFormat(written).format(new Date(2_026, 10, 24, 15, 30))}.`;
}

import type { Violation } from "@devmesh/contracts/model/violation";
import { useForm } from "@mantine/form";
import { useState } from "react";
import type { z } from "zod";
import { ApiProblem } from "../api/api-problem.ts";
import { durationAsTyped } from "./typed-duration.ts";

/** Faults by the field that they are shown at. */
export type FieldFaults<T> = Partial<Record<keyof T & string, string>>;

/** The body of a request as it was typed, or what is wrong in the fields that it comes from. */
export interface ReadForm<T, B> {
  readonly body: B | null;
  readonly faults: FieldFaults<T>;
}

/** What {@link useCheckedForm} is made with. */
interface CheckedFormOptions<T, B> {
  readonly initialValues: T;
  readonly read: (typed: T) => ReadForm<T, B>;
  /** The field that a member of the body comes from, by its JSON pointer. */
  readonly fieldOf: (pointer: string, typed: T) => keyof T & string;
  /** What the server answered last. */
  readonly error: unknown;
}

/**
 * A form that reads its body by a schema. Faults of the schema are shown at their fields once it was submitted, and
 * faults that the server found until something is changed.
 */
export function useCheckedForm<T extends object, B>(options: CheckedFormOptions<T, B>) {
  const { initialValues, read, fieldOf, error } = options;
  const form = useForm<T>({ initialValues });
  const { values } = form;
  const [sent, setSent] = useState<string | null>(null);
  const json = JSON.stringify(values);
  const { body, faults } = read(values);
  const isRefused = error != null && sent === json;
  const refused: FieldFaults<T> =
    isRefused && error instanceof ApiProblem
      ? faultsOf<T>(error.errors, (pointer) => fieldOf(pointer, values))
      : {};
  return {
    form,
    values,
    body,
    /** What was sent last was refused, and is still there. */
    isRefused,
    /** Properties of a field. With `eager` its fault is shown before the form is submitted. */
    field: (name: keyof T & string, { eager = false } = {}) => ({
      ...form.getInputProps(name),
      error: (eager || sent !== null ? faults[name] : undefined) ?? refused[name],
    }),
    /** Runs with the body; shows what is wrong if there is none. */
    submit(run: (body: B) => void): void {
      setSent(json);
      if (body !== null) run(body);
    },
  };
}

/** Reads the body of a request by its schema. */
export function readBody<T, S extends z.ZodType>(
  schema: S,
  body: unknown,
  fieldOf: (pointer: string) => keyof T & string,
): ReadForm<T, z.output<S>> {
  const { data, error } = schema.safeParse(body);
  return { body: data ?? null, faults: error === undefined ? {} : faultsOf<T>(violationsIn(error), fieldOf) };
}

/** What a schema found, as the server writes it. */
export function violationsIn({ issues }: z.ZodError): readonly Violation[] {
  return issues.map(({ path, message }) => ({ pointer: `/${path.map(String).join("/")}`, detail: message }));
}

/** What is wrong in a body, by the fields that its members come from. */
export function faultsOf<T>(
  violations: readonly Violation[],
  fieldOf: (pointer: string) => keyof T & string,
): FieldFaults<T> {
  const faults: FieldFaults<T> = {};
  for (const { pointer, detail } of violations) faults[fieldOf(pointer)] ??= sentenceOf(detail);
  return faults;
}

/** A detail of a violation as the sentence at a field. */
function sentenceOf(detail: string): string {
  if (/^Too small: expected (string|array) to have >=1 /.test(detail)) return "Enter a value.";
  if (/^Invalid/.test(detail)) return "Enter a valid value.";
  const text = detail
    .replace("an ISO 8601 duration", "a time")
    .replaceAll(/\bPT?\d+[DHMS]\b/g, (duration) => durationAsTyped(duration));
  return `${text.charAt(0).toUpperCase()}${text.slice(1)}.`;
}

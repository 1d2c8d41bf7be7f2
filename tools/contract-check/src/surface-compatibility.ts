import type { JsonSchema } from "./json-schema.ts";
import { breaksOf } from "./schema-compatibility.ts";
import type { ContractSurface, MethodSurface } from "./surface.ts";

/**
 * What a surface breaks for those who use a released one, a sentence each. Methods of another version have other
 * subjects and are not compared; events and queues keep theirs, so they stay compatible for good (ADR 15).
 */
export function incompatibilities(released: ContractSurface, current: ContractSurface): string[] {
  const sameVersion = released.version === current.version;
  return [
    ...(released.version > current.version
      ? [`version ${released.version} went back to ${current.version}`]
      : []),
    ...(sameVersion ? methodProblems(released, current) : []),
    ...messageProblems("event", payloads(released.events), payloads(current.events), "given", sameVersion),
    ...messageProblems("job", jobs(released.produces), jobs(current.produces), "given", false),
    ...messageProblems("job", jobs(released.consumes), jobs(current.consumes), "taken", sameVersion),
  ];
}

function methodProblems(released: ContractSurface, current: ContractSurface): string[] {
  return Object.entries(released.methods).flatMap(([name, before]) => {
    const after = current.methods[name];
    if (after === undefined) return [`${name} is gone`];
    return [...callProblems(before, after), ...errorProblems(before, after)].map(
      (problem) => `${name}: ${problem}`,
    );
  });
}

function callProblems(before: MethodSurface, after: MethodSurface): string[] {
  return [
    ...(after.subject === before.subject ? [] : [`subject ${before.subject} became ${after.subject}`]),
    ...(after.deadline_ms < before.deadline_ms
      ? [`the deadline of ${before.deadline_ms} ms became ${after.deadline_ms} ms`]
      : []),
    ...(before.idempotent && !after.idempotent ? ["may not be sent twice any more"] : []),
    ...(before.paged && !after.paged ? ["answers no pages any more"] : []),
    ...schemaProblems("input", before.input, after.input, "taken"),
    ...schemaProblems("output", before.output, after.output, "given"),
  ];
}

/** A new reason breaks nothing: old callers treat it as `internal` (ADR 4). */
function errorProblems(before: MethodSurface, after: MethodSurface): string[] {
  return Object.entries(before.errors).flatMap(([reason, { code, details }]) => {
    const now = after.errors[reason];
    if (now === undefined) return [`error ${reason} is gone`];
    return [
      ...(now.code === code ? [] : [`error ${reason} was ${code} and is ${now.code} now`]),
      ...(details !== undefined && now.details === undefined ? [`details of ${reason} are gone`] : []),
      ...(details !== undefined && now.details !== undefined
        ? schemaProblems(`details of ${reason}`, details, now.details, "given")
        : []),
    ];
  });
}

type Messages = ReadonlyMap<string, JsonSchema>;

function messageProblems(
  kind: "event" | "job",
  before: Messages,
  after: Messages,
  side: "taken" | "given",
  mustStay: boolean,
): string[] {
  return [...before].flatMap(([subject, schema]) => {
    const now = after.get(subject);
    if (now === undefined) return mustStay ? [`${kind} ${subject} is gone`] : [];
    return schemaProblems(`${kind} ${subject}`, schema, now, side);
  });
}

function payloads(events: ContractSurface["events"]): Messages {
  return new Map(Object.values(events).map(({ subject, payload }) => [subject, payload]));
}

function jobs(queues: ContractSurface["consumes"]): Messages {
  return new Map(Object.values(queues).map(({ subject, job }) => [subject, job]));
}

function schemaProblems(
  what: string,
  before: JsonSchema,
  after: JsonSchema,
  side: "taken" | "given",
): string[] {
  try {
    return breaksOf(before, after, side).map(({ pointer, problem }) => `${what}${pointer} ${problem}`);
  } catch (error) {
    if (!(error instanceof TypeError)) throw error;
    return [`${what} cannot be compared: ${error.message}`];
  }
}

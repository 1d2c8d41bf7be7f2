import { isJsonObject, type Json } from "@devmesh/contracts/model/json";
import { pointerToken } from "@devmesh/contracts/model/json-pointer";
import { maxNumbersOfMessage, maxPointerLength } from "@devmesh/contracts/model/series";

/** A number of a message; booleans are 0 and 1. */
export interface MessageNumber {
  /** JSON pointer to it; empty for a message that is a number. */
  readonly pointer: string;
  readonly value: number;
}

/** Deeper members have no series. */
const maxDepth = 16;

/** What a message that holds numbers begins with: JSON without quotes around all of it. */
const mayHoldNumbers = /^\s*[-\d{[tf]/;

/**
 * The numbers of a message in JSON, at most {@link maxNumbersOfMessage}, in the order of its members. None of a text
 * that is no JSON; one that is not finite is left out.
 */
export function numbersOfMessage(message: string): readonly MessageNumber[] {
  if (!mayHoldNumbers.test(message)) return [];
  let document: Json;
  try {
    document = JSON.parse(message);
  } catch {
    return [];
  }
  const numbers: MessageNumber[] = [];
  collect(document, "", 0, numbers);
  return numbers;
}

function collect(value: Json, pointer: string, depth: number, numbers: MessageNumber[]): void {
  if (numbers.length === maxNumbersOfMessage) return;
  if (typeof value === "number" || typeof value === "boolean") {
    if (Number.isFinite(Number(value))) numbers.push({ pointer, value: Number(value) });
    return;
  }
  if (depth === maxDepth || !(Array.isArray(value) || isJsonObject(value))) return;
  for (const name of Object.keys(value)) {
    if (numbers.length === maxNumbersOfMessage) return;
    const below = pointer + pointerToken(name);
    if (below.length > maxPointerLength) continue;
    collect((value as { readonly [name: string]: Json })[name] as Json, below, depth + 1, numbers);
  }
}

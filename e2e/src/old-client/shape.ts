import { isDeepStrictEqual } from "node:util";
import { isJsonObject, type Json } from "@devmesh/contracts/model/json";
import { pointerToken } from "@devmesh/contracts/model/json-pointer";

/**
 * What an answer was made of, without what it said: each value that is neither object nor array is the name of its
 * type, an array is the shapes that occur in it. So a recording holds no secret and no time.
 */
export function shapeOf(value: Json): Json {
  if (Array.isArray(value)) return distinct(value.map(shapeOf));
  if (isJsonObject(value)) {
    return Object.fromEntries(Object.entries(value).map(([name, member]) => [name, shapeOf(member)]));
  }
  return value === null ? "null" : typeof value;
}

/**
 * JSON pointers to what was in a recorded answer and is not, or is of another type, in this one. More members and
 * more elements than were recorded are fine, as long as each recorded shape occurs and each element has one of them.
 * What was null may have a value by now, as `last_used` of a key: which ones, the schema of the released contract
 * says.
 */
export function missingFrom(shape: Json, value: Json | undefined, pointer = ""): string[] {
  if (value === undefined) return [pointer];
  if (Array.isArray(shape)) {
    if (!Array.isArray(value)) return [pointer];
    const fits = (one: Json, element: Json) => missingFrom(one, element).length === 0;
    const absent = shape.filter((one) => !value.some((element) => fits(one, element)));
    const strange = value.flatMap((element, at) =>
      shape.length === 0 || shape.some((one) => fits(one, element)) ? [] : [`${pointer}/${at}`],
    );
    return absent.length > 0 && strange.length === 0 ? [`${pointer}/*`] : strange;
  }
  if (isJsonObject(shape)) {
    if (!isJsonObject(value)) return [pointer];
    return Object.entries(shape).flatMap(([name, member]) =>
      missingFrom(member, value[name], pointer + pointerToken(name)),
    );
  }
  return shape === "null" || shapeOf(value) === shape ? [] : [pointer];
}

function distinct(shapes: readonly Json[]): Json[] {
  return shapes.filter((one, at) => shapes.findIndex((other) => isDeepStrictEqual(one, other)) === at);
}

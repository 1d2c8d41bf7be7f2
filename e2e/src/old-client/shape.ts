import { isDeepStrictEqual } from "node:util";
import { isJsonObject, type Json } from "@devmesh/contracts/model/json";
import { pointerToken } from "@devmesh/contracts/model/json-pointer";

/**
 * The structure of an answer: values become the names of their types, an array its distinct shapes. So a recording
 * holds no secret and no time.
 */
export function shapeOf(value: Json): Json {
  if (Array.isArray(value)) return distinct(value.map(shapeOf));
  if (isJsonObject(value)) {
    return Object.fromEntries(Object.entries(value).map(([name, member]) => [name, shapeOf(member)]));
  }
  return value === null ? "null" : typeof value;
}

/**
 * JSON pointers to what a recorded shape has and this answer lacks or has with another type. More members and elements
 * are fine. What was null may have a value: the schema of the released contract checks which.
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

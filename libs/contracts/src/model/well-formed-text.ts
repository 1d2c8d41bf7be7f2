import { z } from "zod";

/** A text of at most `max` UTF-16 units, all of whose surrogates are in pairs: stores and MQTT take UTF-8 alone. */
export const wellFormedText = (max: number) =>
  z
    .string()
    .max(max)
    .refine((text) => text.isWellFormed(), "must not hold half of a surrogate pair");

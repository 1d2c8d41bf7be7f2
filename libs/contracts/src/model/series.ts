import { z } from "zod";
import { DeviceId } from "./device-id.ts";
import { Timestamp } from "./time.ts";

/** The most points of one series in an answer, and the most series. */
export const maxPoints = 2_000;
export const maxSeriesOfAnswer = 100;
/** Series of a device: the first ones; numbers of further ones are counted. */
export const maxSeriesOfDevice = 200;
/** Numbers of one message that have a series. */
export const maxNumbersOfMessage = 32;
export const maxPointerLength = 256;

/** Where a number is in the messages of a topic. */
export const SeriesPointer = z
  .string()
  .max(maxPointerLength)
  .regex(
    /^(\/([^/~]|~[01])*)*$/,
    "must be a JSON pointer such as /celsius, or empty for a message that is a number",
  );

/** The topic of a series. */
export const SeriesTopic = z
  .string()
  .min(1)
  .max(512)
  .regex(/^[^+#\0]+$/, "must be a topic, without wildcards")
  .meta({ description: "Relative to `db/<device id>/`.", example: "temp" });

/** The length of the spans of an answer; `auto` gives at most some 500. */
export const Every = z
  .string()
  .regex(
    /^(auto|PT[1-9]\d{0,6}[SMH]|P[1-9]\d?[DW]|P1M)$/,
    "must be auto, or one unit such as PT5M, PT1H, P1D, P1W or P1M",
  );

/** What is known of each span, as a query may ask for it. */
export const seriesFunctions = ["avg", "min", "max", "count", "sum", "first", "last"] as const;
export type SeriesFunction = (typeof seriesFunctions)[number];

/** A series that a device has. */
export const DeviceSeries = z
  .object({
    topic: z.string().describe("Relative to `db/<device id>/`."),
    pointer: z.string().describe("JSON pointer to the number; empty for a message that is a number."),
    first_at: Timestamp.describe("When its first number was stored."),
    last_at: Timestamp.describe("When its newest number was stored."),
    last: z.number().describe("Its newest number."),
  })
  .meta({
    id: "DeviceSeries",
    description: "Numbers that a device publishes on one topic at one JSON pointer.",
    example: {
      topic: "temp",
      pointer: "/celsius",
      first_at: "2026-01-01T00:00:00.000Z",
      last_at: "2026-01-31T12:00:00.000Z",
      last: 21.5,
    },
  });
export type DeviceSeries = z.infer<typeof DeviceSeries>;

const number = z.number().nullable();

/** What a series has in a span of time; null without numbers. */
export const SeriesSpan = z.object({
  /** Its begin, in Unix milliseconds. */
  start: z.int(),
  count: z.int().min(0),
  min: number,
  max: number,
  sum: number,
  first: number,
  last: number,
});
export type SeriesSpan = z.infer<typeof SeriesSpan>;

/** Points of one series: the begin of each span, then what was asked for, in that order. */
const SeriesPoints = z
  .object({
    device_id: DeviceId,
    topic: z.string().describe("Relative to `db/<device id>/`."),
    pointer: z.string().describe("JSON pointer to the numbers; empty for messages that are numbers."),
    points: z
      .array(
        z.array(
          z
            .union([Timestamp, number])
            .meta({ id: "SeriesValue", description: "The time of a point, or a number; null without one." }),
        ),
      )
      .describe("The begin of each span, then the value of each function of `fn`, in that order."),
  })
  .meta({ id: "SeriesPoints", description: "Numbers of one device, topic and pointer, by spans of time." });

/** The answer of `GET /series`. */
export const SeriesAnswer = z
  .object({
    every: z.string().describe("The length of a span."),
    from: Timestamp.describe("Begin of the first span."),
    until: Timestamp.describe("End of the last span, exclusive."),
    fn: z.array(z.enum(seriesFunctions)).describe("What each point has after its time."),
    partial: z.boolean().describe("Whether the last span is not over yet."),
    series: z.array(SeriesPoints).describe("In the order of the devices, and of the pointers of each."),
  })
  .meta({
    id: "Series",
    description: "Numbers over time.",
    example: {
      every: "PT1H",
      from: "2026-01-31T10:00:00.000Z",
      until: "2026-01-31T12:00:00.000Z",
      fn: ["avg", "min", "max"],
      partial: false,
      series: [
        {
          device_id: "pump-1",
          topic: "temp",
          pointer: "/celsius",
          points: [
            ["2026-01-31T10:00:00.000Z", 21.5, 20, 23],
            ["2026-01-31T11:00:00.000Z", 22, 21.25, 22.75],
          ],
        },
      ],
    },
  });

import { z } from "zod";
import { JsonValue } from "./json.ts";
import { Timestamp } from "./time.ts";

/** What may happen to an API key or a session, in frames named `keys`. */
export const keyChanges = ["created", "deleted"] as const;

/** What a device did too much of: messages or bytes a second, or bytes that the broker keeps for services. */
const throttleReasons = ["messages", "bytes", "storage"] as const;

/** What may happen to a customer, in frames named `customers`. */
export const customerChanges = ["invited", "confirmed", "updated", "deleted"] as const;

/**
 * One frame of the notification stream (api.md, Notification stream). What `data` holds depends on the name; clients
 * skip names they do not know:
 *
 * | name | id | data |
 * |---|---|---|
 * | `online`, `offline`, `deleted` | device | `{}` |
 * | `throttled` | device | {@link Throttling} |
 * | each of `diagnosisFrames` | device, or an id that a client tried | a `Diagnosis` without its name |
 * | `created`, `updated` | device | the device, as the caller's GET gives it |
 * | `rpc.in.<function>` | device | the parameters of a call that was sent to the device; null for none |
 * | `rpc.out.<name>` | device | what the device published on `ID/event/<name>` |
 * | `execution` | device | an `Execution` that was created or has ended |
 * | `job` | job | a `Job` that has changed |
 * | `alert` | device | an `Alert` that fired, was acknowledged or cleared |
 * | `data` | device | a record as `GET /data` gives it; only with `data=1` |
 * | `keys` | key or session | `{change}`, one of {@link keyChanges}; only with `account=1` |
 * | `customers` | customer | `{change}`, one of {@link customerChanges}; only with `account=1` |
 * | `webhooks` | webhook | `{change}`: `created`, `updated`, `disabled` or `deleted`; only with `account=1` |
 * | `gap` | null | `{names?}`: frames of these names may be missing before it, or of any |
 */
export const Notification = z
  .object({
    seq: z
      .int()
      .min(0)
      .describe(
        "Ascending sequence number; `after` and `Last-Event-ID` take it. A `data` or `gap` frame carries that of the frame before it.",
      ),
    id: z
      .string()
      .nullable()
      .describe("The device, job, key, customer or webhook that it is about; null for `gap`."),
    name: z.string().meta({
      description:
        "`online`, `offline`, `created`, `updated`, `deleted`, `throttled`, `login_refused`, `session_taken_over`, `subscription_limit`, `allowance_exceeded`, `publication_refused`, `execution`, `job`, `alert`, `rpc.in.<function>`, `rpc.out.<name>`, `data`, `keys`, `customers`, `webhooks` or `gap`; others may be added.",
      example: "online",
    }),
    data: JsonValue.describe(
      "`created`, `updated`: the device; `rpc.in`: the parameters; `rpc.out`: what the device published; `data`: the record; `execution`: the execution; `job`: the job; `alert`: the alert; `throttled`: `{why, refused_ms}`, in milliseconds; `keys`, `customers`, `webhooks`: `{change}`; `gap`: `{names?}`; `online`, `offline`, `deleted`: `{}`; else an entry of the device's diagnostics without its name.",
    ),
    timestamp: Timestamp.describe("When it happened."),
  })
  .meta({
    id: "Notification",
    description: "One frame of the notification stream.",
    example: {
      seq: 815,
      id: "pump-1",
      name: "rpc.out.alarm",
      data: { celsius: 91 },
      timestamp: "2026-01-31T12:00:00.000Z",
    },
  });
export type Notification = z.infer<typeof Notification>;

/** `data` of a frame named `throttled`: what the device did too much of, and for how long its logins are refused. */
export const Throttling = z.object({ why: z.enum(throttleReasons), refused_ms: z.int() });

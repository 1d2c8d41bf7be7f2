import { z } from "zod";
import { DeviceId } from "./model/device-id.ts";

/**
 * The caller of a method, as `keys.verify` returns it. The owner of a resource decides what it may see and change; the
 * gateway compares its kind with the route's `auth` and applies `mayReceive` to the notification stream.
 */
export const Principal = z.discriminatedUnion("kind", [
  z.object({ kind: z.literal("master") }),
  /** A device key of an end customer: one device, its `app` sections. */
  z.object({ kind: z.literal("device_key"), device_id: DeviceId }),
  /** A device public key: one device, as far as its ACL allows. */
  z.object({ kind: z.literal("public_key"), device_id: DeviceId }),
  z.object({ kind: z.literal("customer"), customer_id: z.string() }),
  /** The device itself, over its MQTT connection. */
  z.object({ kind: z.literal("device"), device_id: DeviceId }),
]);
export type Principal = z.infer<typeof Principal>;

/**
 * What a route admits. A session of the dashboard is no principal: the gateway admits it to routes without a secret in
 * their answers, and passes it on as the master key that began it (ADR 28).
 */
export type KeyKind = Principal["kind"] | "session";

/** Kinds of key in words, for error texts and the API reference. */
export const keyNames: Readonly<Record<KeyKind, string>> = {
  master: "master key",
  session: "session",
  device_key: "device key",
  public_key: "device public key",
  customer: "customer key",
  device: "device token",
};

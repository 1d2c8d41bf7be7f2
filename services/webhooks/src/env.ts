import { byteSize, ServiceEnv } from "@devmesh/service-kit/process/env";
import ipaddr from "ipaddr.js";
import { z } from "zod";
import type { IpNetwork } from "./requests/guard.ts";

/** 32 random bytes, as 64 hex digits or base64. */
const Key = z.string().transform((text, context): Buffer => {
  const bytes = Buffer.from(text.trim(), /^[0-9a-f]{64}$/i.test(text.trim()) ? "hex" : "base64");
  if (bytes.length === 32 && new Set(bytes).size > 1) return bytes;
  context.addIssue("it must be 32 random bytes, written as 64 hex digits or as base64");
  return z.NEVER;
});

/** Networks in CIDR notation with commas between. */
const Networks = z.string().transform((text, context): readonly IpNetwork[] => {
  try {
    return text
      .split(",")
      .filter((part) => part.trim() !== "")
      .map((part) => ipaddr.parseCIDR(part.trim()));
  } catch {
    context.addIssue("it must be networks such as 10.0.0.0/8,fd00::/8");
    return z.NEVER;
  }
});

/** The environment of the service `webhooks`. */
export const WebhooksEnv = ServiceEnv.extend({
  /** `sqlite:<path>` or `mongodb://<hosts>/<database>`. */
  STORE_URL: z.string().min(1),
  /** All secrets are derived from it. */
  WEBHOOK_KEY: Key,
  /** Networks that requests may go to although they are not public, also by `http:`. */
  WEBHOOK_ALLOW_NETWORKS: Networks.default([]),
  /** Bytes of the events that wait. */
  WEBHOOK_QUEUE_BYTES: byteSize.default(1024 ** 3),
  /** `once`: secrets are shown only when they are made. */
  KEYS_REVEAL: z.enum(["always", "once"]).default("always"),
  /** The `source` of events is below it. No request goes there. */
  PUBLIC_URL: z.url({ protocol: /^https?$/ }),
  /** Where else the gateway is reached, on each address of these hosts; no request goes there. */
  GATEWAY_URLS: z
    .string()
    .default("")
    .transform((text) => text.split(",").map((url) => url.trim()))
    .transform((urls) => urls.filter((url) => url !== ""))
    .pipe(z.array(z.url({ protocol: /^https?$/ }))),
});
export type WebhooksEnv = z.infer<typeof WebhooksEnv>;

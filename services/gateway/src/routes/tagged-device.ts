import { openEnvelope } from "../http/envelope.ts";
import { json, type Reply } from "../http/reply.ts";

/** A device with the tag that a conditional write sends back. */
export function taggedDevice(bytes: Uint8Array): Reply {
  const { first, rest } = openEnvelope(bytes, "etag", "device");
  return json(rest, { headers: { ETag: first } });
}

/** A device as a restricted key sees it. */
export function bareDevice(bytes: Uint8Array): Reply {
  return json(openEnvelope(bytes, "etag", "device").rest);
}

/** The condition of a write, as `devices.patchDevice` takes it. */
export function condition(ifMatch: string | undefined): { readonly if_match?: string } {
  return ifMatch === undefined ? {} : { if_match: ifMatch };
}

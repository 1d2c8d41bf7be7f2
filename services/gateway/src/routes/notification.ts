import type { notificationStream } from "@devmesh/contracts/rest/notification";
import { invalidRequest } from "../http/gateway-errors.ts";
import type { OpenStream } from "../notifications/open-stream.ts";
import type { Handlers } from "./handlers.ts";

/** The notification stream: all devices with a master key, one with its public key. */
export function notificationHandlers(open: OpenStream): Handlers<keyof typeof notificationStream> {
  return {
    async followNotifications({ principal, keyKind, caller, query, header }) {
      const { device, data = false, account = false } = query;
      const after = resumption(query.after, header);
      const isRedacted = keyKind === "session";
      return open({ principal, caller, isRedacted, subscription: { device, data, account, after } });
    },

    async followOwnNotifications({ principal, caller, query, header }) {
      const { data = false } = query;
      const after = resumption(query.after, header);
      const subscription = { device: principal.device_id, data, account: false, after };
      return open({ principal, caller, isRedacted: false, subscription });
    },
  };
}

/** The header is newer than the URL, with which a browser reconnects again and again. */
function resumption(
  after: number | undefined,
  header: (name: string) => string | undefined,
): number | undefined {
  const lastEventId = header("last-event-id");
  if (lastEventId === undefined || lastEventId === "") return after;
  if (!/^\d{1,15}$/.test(lastEventId))
    throw invalidRequest([{ pointer: "/header/Last-Event-ID", detail: "must be the `id` of an event" }]);
  return Number(lastEventId);
}

import type { notificationStream } from "@devmesh/contracts/rest/notification";
import { invalidRequest } from "../http/gateway-errors.ts";
import type { Handlers } from "../http/handlers.ts";
import type { OpenStream } from "../notifications/open-stream.ts";

/** The notification stream: all devices by a master key, one by its public key. */
export function notificationHandlers(open: OpenStream): Handlers<keyof typeof notificationStream> {
  return {
    followNotifications: async ({ principal, caller, query, header }) => {
      const { device, data = false, account = false } = query;
      return open({ principal, caller, wishes: { device, data, account, after: resumption(query, header) } });
    },

    followOwnNotifications: async ({ principal, caller, query, header }) => {
      const { data = false } = query;
      const after = resumption(query, header);
      return open({
        principal,
        caller,
        wishes: { device: principal.device_id, data, account: false, after },
      });
    },
  };
}

/** Where a client goes on. The header is newer than a URL that a browser connects to again and again. */
function resumption(
  { after }: { readonly after?: number | undefined },
  header: (name: string) => string | undefined,
): number | undefined {
  const lastEventId = header("last-event-id");
  if (lastEventId === undefined || lastEventId === "") return after;
  if (!/^\d{1,15}$/.test(lastEventId))
    throw invalidRequest([{ pointer: "/header/Last-Event-ID", detail: "must be the `id` of an event" }]);
  return Number(lastEventId);
}

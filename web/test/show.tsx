import { afterEach, beforeAll } from "@jest/globals";
import { MantineProvider } from "@mantine/core";
import { QueryClientProvider } from "@tanstack/react-query";
import { cleanup, configure, render } from "@testing-library/react";
import { type UserEvent, userEvent } from "@testing-library/user-event";
import type { ReactNode } from "react";
import { createApiClient } from "../src/api/api-client.ts";
import { ApiContext } from "../src/api/api-context.tsx";
import { createQueryClient } from "../src/app/app.tsx";
import { theme } from "../src/app/theme.ts";
import { LiveUpdates } from "../src/live/live-updates.tsx";
import { bodyOf, sendJson, startHttpServer } from "./http-server.ts";

// Updates come from a server at any time, so tests wait for their results on the page.
beforeAll(() => void Object.assign(globalThis, { IS_REACT_ACT_ENVIRONMENT: false }));

// The library does so itself only where the functions of jest are globals.
afterEach(cleanup);

// A busy machine takes long for a page.
configure({ asyncUtilTimeout: 30_000 });

// Browser features that jsdom lacks and components use.
class NoResizes {
  observe(): void {}
  unobserve(): void {}
  disconnect(): void {}
}
const noMatch = (media: string) => Object.assign(new EventTarget(), { media, matches: false });
Object.assign(window, { ResizeObserver: NoResizes, matchMedia: noMatch });
Object.assign(document, { fonts: new EventTarget() });
Object.assign(Object.getPrototypeOf(File.prototype), {
  arrayBuffer(this: Blob) {
    return new Promise((resolve, reject) => {
      const reader = new FileReader();
      reader.onload = () => resolve(reader.result);
      reader.onerror = () => reject(reader.error);
      reader.readAsArrayBuffer(this);
    });
  },
});
Object.assign(performance, { getEntriesByType: () => [] });
Object.assign(Element.prototype, { scrollIntoView: () => {} });

/** The response to a request: status, JSON body or text, headers. */
type TestResponse = readonly [status: number, body?: unknown, headers?: Record<string, string>];

/** Responses by "METHOD /path?query", or by "METHOD /path"; each gets the JSON body of its request. */
export type TestRoutes = Readonly<Record<string, (body: never) => TestResponse | Promise<TestResponse>>>;

/** A component on a page whose API is a real HTTP server. */
export interface ShownPage extends AsyncDisposable {
  readonly user: UserEvent;
  /** Requests except those of streams, as "METHOD /path?query". */
  readonly requests: string[];
  readonly origin: string;
  readonly show: (view: ReactNode) => void;
}

/** Renders a component of a signed-in session. */
export async function showPage(view: ReactNode, routes: TestRoutes): Promise<ShownPage> {
  const requests: string[] = [];
  const server = await startHttpServer(async (request, response) => {
    const { pathname } = new URL(request.url ?? "", "http://localhost");
    const text = await bodyOf(request);
    if (pathname === "/api/v2/notify") return sendJson(response, 404, {});
    requests.push(`${request.method} ${request.url}`);
    const route = routes[`${request.method} ${request.url}`] ?? routes[`${request.method} ${pathname}`];
    const [status, body, headers] = (await route?.((text && JSON.parse(text)) as never)) ?? [
      404,
      problem("not_found"),
    ];
    if (body === undefined || typeof body === "string") response.writeHead(status, headers).end(body);
    else sendJson(response, status, body, headers);
  });
  const { origin } = server;
  const api = createApiClient({ origin, key: "mk_session", session: { id: "own", master_key_id: "one" } });
  const queries = createQueryClient();
  const page = (shown: ReactNode) => (
    <MantineProvider theme={theme} env="test">
      <QueryClientProvider client={queries}>
        <ApiContext value={api}>
          <LiveUpdates apply={() => {}}>{shown}</LiveUpdates>
        </ApiContext>
      </QueryClientProvider>
    </MantineProvider>
  );
  const { rerender, unmount } = render(page(view));
  return {
    user: userEvent.setup(),
    requests,
    origin,
    show: (changed) => rerender(page(changed)),
    async [Symbol.asyncDispose]() {
      unmount();
      queries.clear();
      await server[Symbol.asyncDispose]();
    },
  };
}

/** A problem as the gateway sends it. */
export function problem(reason: string, status = 404, detail = `The reason is ${reason}.`) {
  return {
    type: `/docs/errors#${reason}`,
    title: reason,
    status,
    detail,
    reason,
    request_id: "r-1",
    error: { code: status, message: detail },
  };
}

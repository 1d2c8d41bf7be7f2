import { once } from "node:events";
import type { ServerResponse } from "node:http";
import type { Notification } from "@devmesh/contracts/model/notification";
import { describe, expect, jest, test } from "@jest/globals";
import { createApiClient } from "../src/api/api-client.ts";
import { readEventStream, type ServerEvent } from "../src/live/event-stream.ts";
import type { StreamState } from "../src/live/lasting-stream.ts";
import { followNotifications } from "../src/live/notification-stream.ts";
import { pageVisibility, type Visibility } from "../src/live/page-visibility.ts";
import { startHttpServer } from "./http-server.ts";

const key = `mk_${"a".repeat(32)}`;

/** What happens to a stream that is followed, in its order, each awaited. */
function log<T>() {
  const items: T[] = [];
  const waiting: { count: number; resolve: () => void }[] = [];
  return {
    items,
    push: (item: T) => {
      items.push(item);
      for (const each of waiting) if (items.length >= each.count) each.resolve();
    },
    reaches: (count: number) =>
      new Promise<void>((resolve) => {
        if (items.length >= count) resolve();
        else waiting.push({ count, resolve });
      }),
  };
}

const eventStream = (response: ServerResponse) =>
  response.writeHead(200, { "Content-Type": "text/event-stream" });

const frame = (seq: number, name: string, id: string | null = "pump-1") =>
  `id: ${seq}\ndata: ${JSON.stringify({ seq, id, name, data: {}, timestamp: "2026-01-31T12:00:00.000Z" })}\n\n`;

/** Follows the stream of a server whose connections `answer` serves, the first with 0. */
async function follow(
  answer: (connection: number, response: ServerResponse) => void,
  options: {
    readonly device?: string;
    readonly data?: boolean;
    readonly after?: number;
    readonly silenceMs?: number;
    readonly doubtMs?: number;
    /** Whether the server answers the question whether it does. */
    readonly answersQuestions?: boolean;
    readonly visibility?: Visibility;
  } = {},
) {
  const requests = log<string>();
  const frames = log<Notification>();
  const states = log<StreamState>();
  const gaps = log<true>();
  const beginnings = log<true>();
  const questions = log<true>();
  const { answersQuestions = true, ...timeouts } = options;
  const server = await startHttpServer((request, response) => {
    if (request.method === "HEAD") {
      if (answersQuestions) response.end();
      else request.socket.destroy();
      questions.push(true);
      return;
    }
    expect(request.headers.authorization).toBe(`Bearer ${key}`);
    expect(request.headers.accept).toBe("text/event-stream");
    answer(requests.items.length, response);
    requests.push(request.url ?? "");
  });
  const ending = new AbortController();
  const ended = followNotifications({
    api: createApiClient({ origin: server.origin, key }),
    onFrame: frames.push,
    onState: states.push,
    onBegin: () => beginnings.push(true),
    onGap: () => gaps.push(true),
    signal: ending.signal,
    backOffMs: [1],
    ...timeouts,
  });
  return {
    requests,
    questions,
    frames,
    states,
    gaps,
    beginnings,
    ended,
    async [Symbol.asyncDispose]() {
      ending.abort();
      await ended;
      await server[Symbol.asyncDispose]();
    },
  };
}

/** A page that can be hidden; its streams end after `linger` milliseconds. */
function page(visibilityState: DocumentVisibilityState, linger = 0) {
  const turned = Object.assign(new EventTarget(), { visibilityState });
  return {
    visibility: pageVisibility(turned as unknown as Document, linger),
    turn(to: DocumentVisibilityState) {
      turned.visibilityState = to;
      turned.dispatchEvent(new Event("visibilitychange"));
    },
  };
}

describe("the live stream", () => {
  test("has no connection before its page is first looked at", async () => {
    const { visibility, turn } = page("hidden");
    await using live = await follow(
      (_connection, response) => void eventStream(response).write(frame(1, "online")),
      {
        visibility,
      },
    );
    expect(live.requests.items).toEqual([]);
    turn("visible");
    await live.frames.reaches(1);
    expect(live.beginnings.items).toHaveLength(1);
  });

  test("begins with what is kept where that is wanted, also after a failure", async () => {
    await using live = await follow(
      (connection, response) =>
        connection === 0
          ? response.writeHead(503).end()
          : void eventStream(response).write(frame(3, "online")),
      { after: 0 },
    );
    await live.frames.reaches(1);
    expect(live.requests.items).toEqual(["/api/v2/notify?after=0", "/api/v2/notify?after=0"]);
  });

  test("ends its connection while its page is hidden, and goes on behind the last frame when it is looked at again", async () => {
    const { visibility, turn } = page("visible");
    const closed = log<number>();
    await using live = await follow(
      (connection, response) => {
        response.on("close", () => closed.push(connection));
        eventStream(response).write(frame(connection + 7, "online"));
      },
      { visibility },
    );
    await live.frames.reaches(1);
    turn("hidden");
    await closed.reaches(1);
    expect(live.requests.items).toHaveLength(1);
    turn("visible");
    await live.frames.reaches(2);
    expect(live.requests.items[1]).toBe("/api/v2/notify?after=7");
    expect(live.gaps.items).toEqual([]);
    expect(live.states.items).toEqual(["connecting", "live", "live"]);
  });

  test("keeps its connection while its page is hidden for a moment only", () => {
    jest.useFakeTimers();
    try {
      const ending = new AbortController();
      const { visibility, turn } = page("visible", 10_000);
      const hidden = visibility.hidden(ending.signal);
      turn("hidden");
      jest.advanceTimersByTime(9_000);
      turn("visible");
      jest.advanceTimersByTime(9_000);
      turn("hidden");
      jest.advanceTimersByTime(9_000);
      expect(hidden.aborted).toBe(false);
      jest.advanceTimersByTime(1_000);
      expect(hidden.aborted).toBe(true);
      ending.abort();
    } finally {
      jest.useRealTimers();
    }
  });

  test("tells each frame in order and goes on behind the last one when the connection is lost", async () => {
    await using live = await follow((connection, response) => {
      eventStream(response);
      if (connection === 0) response.end(frame(7, "online") + frame(8, "offline"));
      else response.write(frame(9, "online"));
    });
    await live.frames.reaches(3);
    expect(live.frames.items.map(({ seq, name }) => [seq, name])).toEqual([
      [7, "online"],
      [8, "offline"],
      [9, "online"],
    ]);
    expect(live.requests.items).toEqual(["/api/v2/notify", "/api/v2/notify?after=8"]);
    expect(live.states.items).toEqual(["connecting", "live", "reconnecting", "live"]);
    expect(live.gaps.items).toEqual([]);
  });

  test("says that something may be missed when there was no frame to go on behind, and when the server says so", async () => {
    await using live = await follow((connection, response) => {
      eventStream(response);
      if (connection === 0) response.end(": nothing yet\n\n");
      else response.write(frame(3, "gap", null));
    });
    await live.gaps.reaches(2);
    expect(live.states.items).toEqual(["connecting", "live", "reconnecting", "live"]);
  });

  test.each([404, 406, 503])(
    "is not available while the server answers %i, and is asked for again",
    async (status) => {
      await using live = await follow((connection, response) => {
        if (connection < 2) response.writeHead(status).end();
        else eventStream(response).write(frame(1, "created"));
      });
      await live.frames.reaches(1);
      expect(live.states.items).toEqual(["connecting", "unavailable", "unavailable", "live"]);
    },
  );

  test("is not available where another page is served in its place", async () => {
    await using live = await follow((_connection, response) => {
      response.writeHead(200, { "Content-Type": "text/html" }).end("<h1>Hello</h1>");
    });
    await live.states.reaches(2);
    expect(live.states.items.slice(0, 2)).toEqual(["connecting", "unavailable"]);
  });

  test("ends for good when the key is refused", async () => {
    await using live = await follow((_connection, response) => response.writeHead(401).end());
    await live.ended;
    expect(live.requests.items).toHaveLength(1);
  });

  test("is taken for lost when not even a heartbeat comes", async () => {
    await using live = await follow(
      (_connection, response) => void eventStream(response).write(": hello\n\n"),
      { silenceMs: 1_000 },
    );
    await live.requests.reaches(2);
    expect(live.states.items.slice(0, 3)).toEqual(["connecting", "live", "reconnecting"]);
  });

  test("is taken for lost when nothing comes and the server, asked, does not answer", async () => {
    await using live = await follow(
      (_connection, response) => void eventStream(response).write(": hello\n\n"),
      { doubtMs: 10, answersQuestions: false },
    );
    await live.requests.reaches(2);
    expect(live.states.items.slice(0, 3)).toEqual(["connecting", "live", "reconnecting"]);
  });

  test("is kept while nothing comes and the server, asked, answers", async () => {
    await using live = await follow(
      (_connection, response) => void eventStream(response).write(": hello\n\n"),
      { doubtMs: 10 },
    );
    await live.questions.reaches(3);
    expect(live.requests.items).toHaveLength(1);
    expect(live.states.items).toEqual(["connecting", "live"]);
  });

  test("passes over what it does not know", async () => {
    await using live = await follow((_connection, response) => {
      eventStream(response).write(
        `event: other\ndata: {}\n\ndata: no json\n\ndata: {"seq":"one"}\n\n${frame(2, "later.invented")}`,
      );
    });
    await live.frames.reaches(1);
    expect(live.frames.items[0]?.name).toBe("later.invented");
  });

  test("asks for one device alone where no others are shown, also when it goes on", async () => {
    await using live = await follow(
      (connection, response) => {
        eventStream(response);
        if (connection === 0) response.end(frame(1, "data"));
        else response.write(frame(2, "data"));
      },
      { device: "pump-1", data: true },
    );
    await live.frames.reaches(2);
    expect(live.requests.items).toEqual([
      "/api/v2/notify?device=pump-1&data=1",
      "/api/v2/notify?after=1&device=pump-1&data=1",
    ]);
  });

  test("asks for records only where they are wanted, and lets go of its connection when it ends", async () => {
    let closed: Promise<unknown> | undefined;
    const live = await follow(
      (_connection, response) => {
        closed = once(response, "close");
        eventStream(response).write(frame(1, "data"));
      },
      { data: true },
    );
    await live.frames.reaches(1);
    expect(live.requests.items).toEqual(["/api/v2/notify?data=1"]);
    await live[Symbol.asyncDispose]();
    await closed;
  });
});

describe("an event stream", () => {
  const read = async (chunks: readonly string[]) => {
    const encoder = new TextEncoder();
    const body = new ReadableStream<Uint8Array>({
      start(controller) {
        for (const chunk of chunks) controller.enqueue(encoder.encode(chunk));
        controller.close();
      },
    });
    const events: (ServerEvent | null)[] = [];
    for await (const event of readEventStream(body)) events.push(event);
    return events;
  };

  test("is read as the standard has it, wherever its chunks are cut", async () => {
    const text =
      'id: 1\r\nevent: a\r\ndata: x\r\ndata:  ÿ\r\n\r\n:beat\r\rdata\n\nid\ndata:{"b":1}\n\ndata: unfinished';
    const expected = [
      { event: "a", data: "x\n ÿ" },
      null,
      { event: "message", data: "" },
      { event: "message", data: '{"b":1}' },
    ];
    expect(await read([text])).toEqual(expected);
    expect(await read([...text])).toEqual(expected);
  });
});

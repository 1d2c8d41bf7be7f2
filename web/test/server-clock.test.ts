import { afterEach, describe, expect, jest, test } from "@jest/globals";
import { noteServerTime, serverNow } from "../src/api/server-clock.ts";

const noon = Date.parse("2026-01-31T12:00:00.000Z");
const answeredAt = (time: number) => new Headers({ Date: new Date(time).toUTCString() });

describe("the time on the server", () => {
  afterEach(() => {
    noteServerTime(answeredAt(noon), noon);
    jest.useRealTimers();
  });

  test.each([
    ["is this clock's", 2_000, 0],
    ["is told by a server that is ahead", 600_000, 600_000],
    ["is told by a server that is behind", -600_000, -600_000],
  ])("%s", (_title, ahead, told) => {
    jest.useFakeTimers({ now: noon });
    noteServerTime(answeredAt(noon + ahead));
    jest.setSystemTime(noon + 1_000);
    expect(serverNow()).toBe(noon + 1_000 + told);
  });

  test("stays as it was told when an answer tells none", () => {
    jest.useFakeTimers({ now: noon });
    noteServerTime(answeredAt(noon + 600_000));
    noteServerTime(new Headers());
    expect(serverNow()).toBe(noon + 600_000);
  });
});

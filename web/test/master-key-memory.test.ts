import { afterEach, beforeEach, expect, jest, test } from "@jest/globals";
import { browserName } from "../src/app/browser-name.ts";
import { createMasterKeyMemory, rememberedMs } from "../src/app/master-key-memory.ts";

beforeEach(() => void jest.useFakeTimers());
afterEach(() => void jest.useRealTimers());

test("a master key is forgotten ten minutes after it was entered, and at once when asked to", () => {
  const memory = createMasterKeyMemory();
  expect(memory.get()).toBeNull();
  memory.set("mk_1");
  jest.advanceTimersByTime(rememberedMs - 1);
  expect(memory.get()).toBe("mk_1");
  memory.set("mk_2");
  jest.advanceTimersByTime(rememberedMs - 1);
  expect(memory.get()).toBe("mk_2");
  jest.advanceTimersByTime(1);
  expect(memory.get()).toBeNull();
  memory.set("mk_3");
  memory.forget();
  expect(memory.get()).toBeNull();
});

test("a master key is forgotten, too, where the computer slept over the time", () => {
  const memory = createMasterKeyMemory();
  memory.set("mk_1");
  jest.setSystemTime(Date.now() + rememberedMs);
  expect(memory.get()).toBeNull();
});

test.each([
  ["Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0", "Firefox on Linux"],
  [
    "Mozilla/5.0 (Windows NT 10.0; Win64; x64) … Chrome/140.0.0.0 Safari/537.36 Edg/140.0.0.0",
    "Edge on Windows",
  ],
  ["Mozilla/5.0 (Linux; Android 15) … Chrome/140.0.0.0 Mobile Safari/537.36", "Chrome on Android"],
  ["Mozilla/5.0 (iPhone; CPU iPhone OS 18_0 like Mac OS X) … Version/18.0 Safari/604.1", "Safari on iPhone"],
  ["curl", "Browser"],
])("a session in %s is named after it", (userAgent, name) => {
  expect(browserName(userAgent)).toBe(name);
});

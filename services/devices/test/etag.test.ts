import { describe, expect, test } from "@jest/globals";
import { etagOf, matchesEtag } from "../src/registry/etag.ts";
import type { StoredDevice } from "../src/store/device-store.ts";

const device = { id: "pump", position: "7", revision: 3, created_at: 1_000, last_seen: null } as StoredDevice;
const tagOf = (changes: Partial<StoredDevice>, online: boolean, seen: number | null = null) =>
  etagOf({ ...device, ...changes }, { isOnline: () => online, lastSeen: () => seen });

describe("the tag of a device", () => {
  test("changes with what is stored, with a connection, and with when the device was last seen", () => {
    const tags = [
      tagOf({}, false),
      tagOf({ revision: 4 }, false),
      tagOf({ position: "8" }, false),
      tagOf({}, true),
      tagOf({ last_seen: 5_000 }, false),
      tagOf({}, false, 6_000),
    ];
    expect(new Set(tags).size).toBe(tags.length);
    for (const tag of tags) expect(tag).toMatch(/^"[\w.~-]+"$/);
  });

  test("stays while the device stays connected", () => {
    expect(tagOf({ last_seen: 5_000 }, true, 9_000)).toBe(tagOf({}, true, 8_000));
  });

  test("is compared by If-Match without presence, also as earlier releases wrote it", () => {
    const [before, now] = [tagOf({}, false), tagOf({}, true)];
    for (const named of [before, now, '"7.3"', `"x", ${before}`, "*"])
      expect(matchesEtag(named, device)).toBe(true);
    for (const other of [
      tagOf({ revision: 4 }, true),
      `W/${now}`,
      '"7.30"',
      '"7.3~on',
      "7.3",
      '""',
      "nonsense",
    ])
      expect([other, matchesEtag(other, device)]).toEqual([other, false]);
  });
});

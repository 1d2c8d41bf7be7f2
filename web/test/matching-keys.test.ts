import type { ApiKey } from "@devmesh/contracts/model/api-key";
import { describe, expect, test } from "@jest/globals";
import { matchingRows } from "../src/components/short-list-tab.tsx";
import { textsOfKey } from "../src/features/keys/keys-tab.tsx";

const key = (id: string, changes: Partial<ApiKey>): ApiKey => ({
  id,
  key: null,
  access: "full",
  device_id: null,
  name: null,
  created_at: "2026-01-31T12:00:00.000Z",
  last_used: null,
  expires_at: null,
  ...changes,
});

const keys = [
  key("k1", { name: "Night shift" }),
  key("k2", { access: "device", device_id: "pump-7" }),
  key("k3", { key: "mk_Abcdefgh" }),
];

describe("keys", () => {
  test.each([
    ["", ["k1", "k2", "k3"]],
    ["night", ["k1"]],
    ["PUMP", ["k2"]],
    ["abcd", ["k3"]],
    ["K2", ["k2"]],
    ["lamp", []],
  ])("that %j finds", (filter, ids) => {
    expect(matchingRows(keys, textsOfKey, filter).map(({ id }) => id)).toEqual(ids);
  });
});

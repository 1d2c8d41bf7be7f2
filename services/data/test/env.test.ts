import { readEnv } from "@devmesh/service-kit/process/env";
import { describe, expect, test } from "@jest/globals";
import { DataEnv } from "../src/env.ts";

const STORE_URL = "sqlite:/var/lib/devmesh/data.db";
const gigabyte = 1024 ** 3;

describe("the data service's environment", () => {
  test("has the defaults of the public contract", () => {
    expect(readEnv(DataEnv, { STORE_URL })).toMatchObject({
      env: {
        STORE_URL: { kind: "sqlite", path: "/var/lib/devmesh/data.db" },
        DATA_RETENTION_DAYS: 30,
        DATA_MAX_BYTES: 10 * gigabyte,
        INGEST_BATCH: 1_000,
        INGEST_WAIT_MS: 50,
      },
    });
  });

  test.each([
    ["1048576", 1024 ** 2],
    ["64M", 64 * 1024 ** 2],
    ["2g", 2 * gigabyte],
    ["1T", 1024 * gigabyte],
  ])("a size of %s is %d bytes", (DATA_MAX_BYTES, bytes) => {
    expect(readEnv(DataEnv, { STORE_URL, DATA_MAX_BYTES })).toMatchObject({ env: { DATA_MAX_BYTES: bytes } });
  });

  test.each([
    { DATA_MAX_BYTES: "lots" },
    { DATA_MAX_BYTES: "10GB" },
    { DATA_MAX_BYTES: "100K" },
    { DATA_RETENTION_DAYS: "0" },
    { INGEST_BATCH: "1001" },
    { STORE_URL: "mysql://user:secret@host" },
  ])("%j is one problem, reported without the value", (wrong) => {
    const reading = readEnv(DataEnv, { STORE_URL, ...wrong });
    const problems = "problems" in reading ? reading.problems : [];
    expect(problems).toHaveLength(1);
    expect(problems[0]).not.toContain("secret");
  });
});

import { describe, expect, test } from "@jest/globals";
import { z } from "zod";
import { readEnv, ServiceEnv } from "../src/process/env.ts";

const schema = ServiceEnv.extend({ STORE_URL: z.string(), BATCH: z.coerce.number().int() });

describe("the environment of a service", () => {
  test("is read with its defaults, empty variables counting as missing", () => {
    const reading = readEnv(schema, { STORE_URL: "sqlite:x", BATCH: "5", OPS_PORT: "", UNRELATED: "1" });
    expect(reading).toMatchObject({ env: { BATCH: 5, OPS_PORT: 0, DRAIN_MS: 30_000, LOG_LEVEL: "info" } });
  });

  test("that is wrong gives one sentence a variable, never the value", () => {
    const reading = readEnv(schema, { BATCH: "sEcReT", NATS_URL: "http://pass@host", LOG_LEVEL: "loud" });
    if (!("problems" in reading)) throw new Error("accepted");
    expect([...reading.problems].sort()).toEqual([
      "BATCH is wrong: must be a number.",
      "LOG_LEVEL is wrong: must be one of trace, debug, info, warn, error, fatal, silent.",
      "NATS_URL is wrong: must be nats://HOST:PORT, or several of it with commas between.",
      "STORE_URL is missing: it has no default.",
    ]);
    expect(reading.problems.join()).not.toMatch(/sEcReT|pass|loud/);
  });

  test.each([
    ["1.5", "must be a whole number"],
    ["-1", "must be at least 0"],
    ["600001", "must be at most 600000"],
  ])("says what a number must be: %s %s", (DRAIN_MS, requirement) => {
    expect(readEnv(ServiceEnv, { DRAIN_MS })).toEqual({ problems: [`DRAIN_MS is wrong: ${requirement}.`] });
  });
});

import { describe, expect, test } from "@jest/globals";
import { z } from "zod";
import { readEnv, ServiceEnv } from "../src/env.ts";

const schema = ServiceEnv.extend({ STORE_URL: z.string(), BATCH: z.coerce.number().int() });

describe("the environment of a service", () => {
  test("is read with its defaults, empty variables counting as missing", () => {
    const reading = readEnv(schema, { STORE_URL: "sqlite:x", BATCH: "5", OPS_PORT: "", UNRELATED: "1" });
    expect(reading).toMatchObject({ env: { BATCH: 5, OPS_PORT: 0, DRAIN_MS: 30_000, LOG_LEVEL: "info" } });
  });

  test("that is wrong gives one sentence a variable, never the value", () => {
    const reading = readEnv(schema, { BATCH: "sEcReT", NATS_URL: "http://pass@host", LOG_LEVEL: "loud" });
    if (!("problems" in reading)) throw new Error("accepted");
    expect(reading.problems.map((problem) => problem.split(" ").slice(0, 3).join(" ")).sort()).toEqual([
      "BATCH is wrong:",
      "LOG_LEVEL is wrong:",
      "NATS_URL is wrong:",
      "STORE_URL is missing:",
    ]);
    expect(reading.problems.join()).not.toMatch(/sEcReT|pass|loud/);
  });
});

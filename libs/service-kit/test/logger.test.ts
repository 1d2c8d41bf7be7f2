import { describe, expect, test } from "@jest/globals";
import { createLogger } from "../src/logger.ts";

describe("a log line", () => {
  test("holds no secret, wherever it stands", () => {
    let text = "";
    const log = createLogger({
      service: "greeter",
      level: "info",
      replica: "r1",
      destination: {
        write: (line) => {
          text += line;
        },
      },
    });
    log.info(
      { password: "p1", request: { token: "p2", headers: { authorization: "p3" } }, key: "p4" },
      "said",
    );
    const line = JSON.parse(text);
    expect(line).toMatchObject({ service: "greeter", replica: "r1", level: "info", msg: "said" });
    expect(text).not.toMatch(/p[1-4]"/);
    expect(line.request.headers.authorization).toBe("[redacted]");
  });

  test("shows what cannot be seen in a stranger's text, and is the same text when parsed", () => {
    let text = "";
    const log = createLogger({
      service: "greeter",
      level: "info",
      destination: { write: (line) => (text += line) },
    });
    const name = "pump\u202e\u009b2J\u200b\u2028 Zähler";
    log.info({ name }, "said");
    log.info("said");
    expect(text).toContain("pump\\u202e\\u009b2J\\u200b\\u2028 Zähler");
    const lines = text.split("\n");
    expect(lines).toHaveLength(3);
    expect(JSON.parse(lines[0] ?? "")).toMatchObject({ name });
  });

  test("tells of an error what went wrong and why, and nothing of what its driver put into it", () => {
    let text = "";
    const destination = { write: (line: string) => (text += line) };
    const log = createLogger({ service: "greeter", level: "info", destination });
    const refused = Object.assign(new Error("refused"), { code: 121, op: { payload: "private" } });
    log.error({ err: new Error("not stored", { cause: refused }) }, "failed");
    log.error({ err: refused }, "failed");
    const [whole, bare] = text
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line));
    expect(whole.err).toMatchObject({ type: "Error", message: "not stored: refused" });
    expect(whole.err.stack).toContain("caused by: Error: refused");
    expect(bare.err).toMatchObject({ message: "refused", code: 121 });
    expect(text).not.toContain("private");
  });
});

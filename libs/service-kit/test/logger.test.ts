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
});

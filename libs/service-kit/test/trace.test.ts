import { describe, expect, test } from "@jest/globals";
import { childSpan, formatTraceparent, parseTraceparent, startTrace } from "../src/tracing/trace.ts";

const traceId = "4bf92f3577b34da6a3ce929d0e0e4736";
const spanId = "00f067aa0ba902b7";

describe("a traceparent", () => {
  test("is read and written as W3C Trace Context says", () => {
    const header = `00-${traceId}-${spanId}-01`;
    expect(parseTraceparent(header)).toEqual({ traceId, spanId, sampled: true });
    expect(formatTraceparent({ traceId, spanId, sampled: true })).toBe(header);
    expect(parseTraceparent(`00-${traceId}-${spanId}-00`)?.sampled).toBe(false);
    expect(parseTraceparent(`cc-${traceId}-${spanId}-01-what-comes`)?.traceId).toBe(traceId);
  });

  test.each([
    undefined,
    "",
    `ff-${traceId}-${spanId}-01`,
    `00-${traceId}-${spanId}-01-more`,
    `00-${"0".repeat(32)}-${spanId}-01`,
    `00-${traceId}-${"0".repeat(16)}-01`,
    `00-${traceId.toUpperCase()}-${spanId}-01`,
    `00-${traceId}-${spanId}`,
    "nonsense",
  ])("that is invalid is none: %s", (header) => {
    expect(parseTraceparent(header)).toBeNull();
  });

  test("of a child stays in the trace with a span of its own", () => {
    const parent = startTrace();
    const child = childSpan(parent);
    expect(child.traceId).toBe(parent.traceId);
    expect(child.spanId).toMatch(/^[0-9a-f]{16}$/);
    expect(child.spanId).not.toBe(parent.spanId);
  });
});

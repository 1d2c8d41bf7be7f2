import { Readable } from "node:stream";
import { finished } from "node:stream/promises";
import { expect, test } from "@jest/globals";
import { readLines } from "../src/process/line-reader.ts";

async function linesOf(chunks: readonly string[]): Promise<string[]> {
  const stream = Readable.from(chunks.map((chunk) => Buffer.from(chunk)));
  const read: string[] = [];
  readLines(stream, (lines) => read.push(...lines));
  await finished(stream);
  return read;
}

test("lines are read over the borders of chunks, the last one without its line feed too", async () => {
  expect(await linesOf(["one\ntw", "o\n\nthr", "ee"])).toEqual(["one", "two", "", "three"]);
});

test("of a line without end the begin is read, and nothing after it passes for a line", async () => {
  const long = "x".repeat(70_000);
  expect(await linesOf([long, "[7] forged", `${long} forged`, " forged\nnext\n"])).toEqual([long, "next"]);
  expect(await linesOf([long, "forged"])).toEqual([long]);
});

import { mkdir, readdir, readFile, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { tempFolder } from "@devmesh/testkit/temp-folder";
import { afterEach, beforeEach, expect, test } from "@jest/globals";
import { z } from "zod";
import {
  planSurfaces,
  readReleasedSurfaces,
  releasedSurfacePath,
  type SurfacePlan,
} from "../src/surface-files.ts";
import { type LampContract, lampService, lampSurface } from "./lamp.ts";

let folder: Awaited<ReturnType<typeof tempFolder>>;
let root: string;
beforeEach(async () => {
  folder = await tempFolder();
  root = folder.path;
});
afterEach(async () => {
  await folder[Symbol.asyncDispose]();
});

const released = (version: number) => releasedSurfacePath("lamp", version);
const on = z.object({ on: z.boolean() });
const onOrDim = on.extend({ dim: z.boolean().optional() });
const onAndDim = on.extend({ dim: z.boolean() });

async function write({ documents }: SurfacePlan): Promise<void> {
  for (const [path, text] of Object.entries(documents)) {
    await mkdir(dirname(join(root, path)), { recursive: true });
    await writeFile(join(root, path), text);
  }
}

/** What `npm run generate`, with `release` `npm run generate -- --release`, does to the files. */
async function generate(lamp: LampContract, release = false): Promise<SurfacePlan> {
  const plan = await planSurfaces(root, { lamp: lampService(lamp) }, release);
  await write(plan);
  return plan;
}

test("the first surface of a service is released as it is", async () => {
  const { documents } = await generate({ input: on });
  expect(Object.keys(documents)).toEqual([released(1)]);
  expect(await readReleasedSurfaces(root, "lamp")).toEqual([lampSurface({ input: on })]);
});

test("an addition changes what was released only when it is released", async () => {
  await generate({ input: on });
  expect(Object.keys((await generate({ input: onOrDim })).documents)).toEqual([]);
  expect(Object.keys((await generate({ input: onOrDim }, true)).documents)).toEqual([released(1)]);
  expect(await generate({ input: on })).toEqual({
    documents: {},
    problems: ["lamp v1: switch: input/dim is gone"],
  });
});

test("an addition that was not released yet may still be taken back", async () => {
  await generate({ input: on });
  await generate({ input: onOrDim });
  expect((await generate({ input: on })).problems).toEqual([]);
});

test.each([false, true])("an incompatible change is never written, with --release %p", async (release) => {
  await generate({ input: on });
  const before = await readFile(join(root, released(1)), "utf8");
  for (const _ of ["once", "and again"]) {
    expect(await generate({ input: onAndDim }, release)).toEqual({
      documents: {},
      problems: ["lamp v1: switch: input/dim is required now"],
    });
  }
  expect(await readFile(join(root, released(1)), "utf8")).toBe(before);
});

test("an incompatible change in small steps is refused like one in a big step", async () => {
  await generate({ input: on });
  await generate({ input: onOrDim });
  expect((await generate({ input: onAndDim })).problems).not.toEqual([]);
});

test("a new version is released beside the former one", async () => {
  await generate({ input: on });
  const { documents, problems } = await generate({ version: 2, input: onAndDim });
  expect(problems).toEqual([]);
  expect(Object.keys(documents)).toEqual([released(2)]);
  expect((await readReleasedSurfaces(root, "lamp")).map(({ version }) => version)).toEqual([1, 2]);
  expect((await generate({ version: 1, input: on })).problems).toContain("lamp v2: version 2 went back to 1");
});

test("a service that says nothing any more has broken all it said", async () => {
  await generate({ input: on });
  const silent = { ...lampService(), serves: null, publishes: null };
  expect(await planSurfaces(root, { lamp: silent }, false)).toEqual({
    documents: {},
    problems: ["lamp v1: switch is gone"],
  });
});

test("a service that is no part of the mesh any more has broken all it said, as long as its files are there", async () => {
  await generate({ input: on });
  expect(await planSurfaces(root, {}, false)).toEqual({
    documents: {},
    problems: ["lamp v1: switch is gone"],
  });
});

test("a service that never said anything has no files", async () => {
  const silent = { ...lampService(), serves: null, publishes: null };
  expect(await planSurfaces(root, { lamp: silent }, true)).toEqual({ documents: {}, problems: [] });
  expect(await readdir(root)).toEqual([]);
});

test.each([
  [
    "with a keyword that nothing here can compare",
    (text: string) => text.replace('"type"', '"minProperties":1,"type"'),
  ],
  ["that is no surface", () => "{}"],
  ["that is no JSON", () => "<<<<<<< HEAD"],
])("a released surface %s is refused", async (_, damaged) => {
  const { documents } = await generate({ input: on });
  await writeFile(join(root, released(1)), damaged(documents[released(1)] ?? ""));
  await expect(planSurfaces(root, { lamp: lampService() }, false)).rejects.toThrow(
    "v1.json cannot be compared with",
  );
});

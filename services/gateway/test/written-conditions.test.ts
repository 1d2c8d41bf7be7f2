import { Problem } from "@devmesh/contracts/rest/problem";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "@jest/globals";
import { type Fixture, startFixture } from "./gateway-fixture.ts";

let mesh: Fixture;
/** Inputs of the fakes below. */
let received: unknown[];
beforeAll(async () => {
  mesh = await startFixture();
});
afterEach(() => mesh.fakes.reset());
afterAll(async () => mesh[Symbol.asyncDispose]());

/** Notes what the services receive of the bodies below. */
function noteInputs(): void {
  received = [];
  const { alerts, devices, jobs } = mesh.fakes;
  const noting =
    <I, C, O>(answer: (input: I, context: C) => O) =>
    (input: I, context: C): O => {
      received.push(input);
      return answer(input, context);
    };
  jobs.tryTarget = noting(jobs.tryTarget);
  jobs.createJob = noting(jobs.createJob);
  jobs.createFirmware = noting(jobs.createFirmware);
  alerts.createRule = noting(alerts.createRule);
  alerts.tryRule = noting(alerts.tryRule);
  alerts.changeRule = noting(alerts.changeRule);
  alerts.createSilence = noting(alerts.createSilence);
  devices.createBoard = noting(devices.createBoard);
  devices.patchBoard = noting(devices.patchBoard);
}

const action = { kind: "rpc", func: "Allowed" };
const when = { kind: "offline", longer_than: "PT1H" };
const until = "9999-01-01T00:00:00Z";
const sha256 = "0".repeat(64);
const shown = { kind: "chart", topic: "temp", pointer: "", fn: "avg", range: "P1D", x: 0, y: 0, w: 4, h: 2 };

/** Each body that has a condition, and the pointer to it. */
const bodies: readonly [path: string, pointer: string, bodyWith: (where: unknown) => object][] = [
  ["jobs?dry_run=true", "/target/where", (where) => ({ target: { where }, action })],
  ["jobs", "/target/where", (where) => ({ target: { where }, action })],
  ["rules", "/where", (where) => ({ name: "Away", where, when })],
  ["rules/try", "/where", (where) => ({ name: "Away", where, when })],
  ["rules/r1", "/where", (where) => ({ where })],
  ["silences", "/where", (where) => ({ where, until })],
  ["boards", "/panels/0/where", (where) => ({ name: "Cold store", panels: [{ ...shown, where }] })],
  ["boards/b1", "/panels/0/where", (where) => ({ revision: 2, panels: [{ ...shown, where }] })],
  ["firmware", "/requires", (requires) => ({ name: "pump", version: "1", size: 1, sha256, requires })],
];

describe.each(bodies)("the condition of a body of %s", (path, pointer, bodyWith) => {
  const post = (where: unknown) => mesh.fetch(`/api/v2/${path}`, { json: bodyWith(where) });
  const errorsOf = async (where: unknown) => {
    const answer = await post(where);
    expect(answer.status).toBe(400);
    return Problem.parse(await answer.json()).errors;
  };

  test.each([
    ["a text", "label:site-1 -version:1.4.2"],
    ["an object as text", ' {"labels":{"all":["site-1"]},"version":{"not_in":["1.4.2"]}}'],
    ["an object", { labels: { all: ["site-1"] }, version: { not_in: ["1.4.2"] } }],
  ])("may be %s, of which its service receives the object", async (_, where) => {
    noteInputs();
    expect((await post(where)).ok).toBe(true);
    expect(JSON.stringify(received)).toContain(
      '{"labels":{"all":["site-1"]},"version":{"not_in":["1.4.2"]}}',
    );
  });

  test("is refused with a pointer to it, or into it", async () => {
    expect(await errorsOf("labl:a")).toEqual([
      { pointer, detail: expect.stringMatching(/^at character 1: .*allowed: label/) },
    ]);
    expect(await errorsOf({ labels: { all: [1] } })).toEqual([
      { pointer: `${pointer}/labels/all/0`, detail: "must be a string" },
    ]);
    expect(await errorsOf({ labl: 1 })).toEqual([
      { pointer: `${pointer}/labl`, detail: "is not known here" },
    ]);
    expect(await errorsOf(7)).toEqual([{ pointer, detail: "must be a text or an object" }]);
  });
});

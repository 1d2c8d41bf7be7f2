import { describe, expect, test } from "@jest/globals";
import { brokerBackOff, serviceBackOff } from "../../src/process/back-off.ts";
import type { RunningProcess } from "../../src/process/supervision.ts";
import { supervise } from "../../src/process/supervision.ts";

/** A process that ends when the test says so. */
function fakeProcess(pid: number) {
  const { promise: ended, resolve } = Promise.withResolvers<string>();
  const process: RunningProcess = {
    pid,
    ended,
    async end() {
      resolve("was ended");
    },
  };
  return { process, die: () => resolve("was killed (SIGKILL)") };
}

function recordedReport() {
  const logged: string[] = [];
  const next: (() => void)[] = [];
  return {
    logged,
    /** Resolves at the next sentence. */
    sentence: () => new Promise<void>((resolve) => next.push(resolve)),
    log(sentence: string) {
      logged.push(sentence);
      for (const resolve of next.splice(0)) resolve();
    },
    changed() {},
  };
}

const never = new AbortController().signal;

describe("a supervised part", () => {
  test("is started again when it dies, and both are reported", async () => {
    const started = [fakeProcess(1), fakeProcess(2)];
    let starts = 0;
    const report = recordedReport();
    const part = await supervise(
      {
        name: "keys",
        start: async () => started[starts++]?.process ?? fakeProcess(9).process,
        backOff: serviceBackOff,
      },
      report,
      never,
    );
    expect(part.current()?.pid).toBe(1);
    started[0]?.die();
    await report.sentence();
    expect(part.current()).toBeNull();
    await report.sentence();
    expect(part.current()?.pid).toBe(2);
    expect(report.logged).toEqual([
      "keys was killed (SIGKILL); it is started again in 1 s.",
      "keys is ready again.",
    ]);
    await part.stop(0);
  });

  test("whose wait is over at once is reported so", async () => {
    const started = [fakeProcess(1), fakeProcess(2)];
    let starts = 0;
    const report = recordedReport();
    const part = await supervise(
      {
        name: "nats-server",
        start: async () => started[starts++]?.process ?? fakeProcess(9).process,
        backOff: brokerBackOff,
      },
      report,
      never,
    );
    started[0]?.die();
    await report.sentence();
    await report.sentence();
    expect(report.logged).toEqual([
      "nats-server was killed (SIGKILL); it is started again at once.",
      "nats-server is ready again.",
    ]);
    await part.stop(0);
  });

  test("that fails at its first start is not tried again", async () => {
    let starts = 0;
    const failing = {
      name: "keys",
      start: async () => Promise.reject(new Error(`start ${++starts}`)),
      backOff: serviceBackOff,
    };
    await expect(supervise(failing, recordedReport(), never)).rejects.toThrow("start 1");
    expect(starts).toBe(1);
  });

  test("that is stopped while it waits to be started again stays down", async () => {
    const first = fakeProcess(1);
    let starts = 0;
    const report = recordedReport();
    const part = await supervise(
      {
        name: "keys",
        start: async () => {
          starts++;
          return first.process;
        },
        backOff: serviceBackOff,
      },
      report,
      never,
    );
    first.die();
    await report.sentence();
    await part.stop(0);
    expect(starts).toBe(1);
    expect(part.current()).toBeNull();
  });

  test("that becomes ready just while it is stopped is ended", async () => {
    const processes = [fakeProcess(1), fakeProcess(2)];
    const second = Promise.withResolvers<RunningProcess>();
    const secondStarts = Promise.withResolvers<void>();
    let starts = 0;
    const part = await supervise(
      {
        name: "keys",
        start: async () => {
          if (starts++ === 0 && processes[0]) return processes[0].process;
          secondStarts.resolve();
          return await second.promise;
        },
        backOff: serviceBackOff,
      },
      recordedReport(),
      never,
    );
    processes[0]?.die();
    await secondStarts.promise;
    const stopped = part.stop(0);
    if (processes[1]) second.resolve(processes[1].process);
    await stopped;
    expect(await processes[1]?.process.ended).toBe("was ended");
  });
});

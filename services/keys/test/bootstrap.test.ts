import { execFile } from "node:child_process";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { tempFolder } from "@devmesh/testkit/temp-folder";
import { afterEach, beforeEach, expect, test } from "@jest/globals";
import { type FakeApiServer, startApiServer } from "./fake-api-server.ts";

const main = join(import.meta.dirname, "../src/bootstrap/main.ts");
const token = "eyJhbGciOi.job-token.xyz";

let api: FakeApiServer;
let serviceAccount: Awaited<ReturnType<typeof tempFolder>>;

beforeEach(async () => {
  api = await startApiServer(token, "devmesh", "master-key");
  serviceAccount = await tempFolder();
  await writeFile(join(serviceAccount.path, "token"), `${token}\n`);
  await writeFile(join(serviceAccount.path, "namespace"), "devmesh");
});

afterEach(async () => {
  await api[Symbol.asyncDispose]();
  await serviceAccount.remove();
});

/** Runs the Job's process to its end. */
function runJob(env: NodeJS.ProcessEnv = {}): Promise<{ code: number; output: string }> {
  return new Promise((resolve) => {
    execFile(
      process.execPath,
      ["--disable-warning=ExperimentalWarning", main],
      {
        env: {
          PATH: process.env.PATH,
          MASTER_KEY_SECRET: "master-key",
          KUBERNETES_API_URL: api.url,
          SERVICE_ACCOUNT_DIR: serviceAccount.path,
          ...env,
        },
      },
      (error, stdout, stderr) =>
        resolve({ code: typeof error?.code === "number" ? error.code : 0, output: stdout + stderr }),
    );
  });
}

const heldKey = () => Buffer.from(api.secret.data?.MASTER_KEY ?? "", "base64").toString("utf8");

test("the first master key is made in the Secret, printed nowhere, and a second run leaves it alone", async () => {
  const first = await runJob();
  expect(first).toEqual({ code: 0, output: "The first master key is in the Secret master-key.\n" });
  const key = heldKey();
  expect(key).toMatch(/^mk_[0-9A-Za-z]{32}$/);
  expect(api.secret.metadata.labels).toEqual({ "app.kubernetes.io/part-of": "devmesh" });

  expect(await runJob()).toEqual({ code: 0, output: "The Secret master-key holds a master key already.\n" });
  expect(heldKey()).toBe(key);
  const path = "/api/v1/namespaces/devmesh/secrets/master-key";
  expect(api.requests).toEqual([`GET ${path}`, `PUT ${path}`, `GET ${path}`]);
});

test("a key that somebody writes meanwhile is not replaced, and the next run finds it", async () => {
  api.afterNextRead(() => {
    api.secret.data = { MASTER_KEY: Buffer.from("theirs").toString("base64") };
    api.secret.metadata.resourceVersion = "7";
  });
  const lost = await runJob();
  expect(lost.code).toBe(1);
  expect(lost.output).toContain("changed by another writer");
  expect(heldKey()).toBe("theirs");
  expect((await runJob()).code).toBe(0);
});

test.each([401, 403, 404, 500])(
  "an API server that answers %i is reported in one sentence without a secret",
  async (status) => {
    api.failWith(status);
    const { code, output } = await runJob();
    expect(code).toBe(1);
    expect(output).toBe(`No master key: the API server answered ${status} to a GET of the Secret.\n`);
  },
);

test("an API server that cannot be reached is reported with the reason", async () => {
  const { code, output } = await runJob({ KUBERNETES_API_URL: "http://127.0.0.1:1" });
  expect(code).toBe(1);
  expect(output).toMatch(/^No master key: the API server cannot be reached: .+\n$/);
});

test("without a name of the Secret the process says so and asks nobody", async () => {
  const { code, output } = await runJob({ MASTER_KEY_SECRET: "" });
  expect(code).toBe(1);
  expect(output).toMatch(/^MASTER_KEY_SECRET is missing: .*\n$/);
  expect(api.requests).toEqual([]);
});

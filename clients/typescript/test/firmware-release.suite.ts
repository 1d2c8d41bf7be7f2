import { createHash } from "node:crypto";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { eventually } from "@devmesh/testkit/eventually";
import type { TestMesh } from "@devmesh/testkit/mesh";
import { connectMqttDevice } from "@devmesh/testkit/mqtt-device";
import { startProcess } from "@devmesh/testkit/process";
import { tempFolder } from "@devmesh/testkit/temp-folder";
import { describe, expect, test } from "@jest/globals";

const program = new URL("../src/firmware-release.ts", import.meta.url).pathname;

interface Offer {
  readonly url: string;
  readonly version: string;
  readonly sha256: string;
}

/** A device that takes over the firmware which its shadow offers, and goes back to the old one if it becomes `old`. */
async function connectUpdatable(
  mesh: TestMesh,
  id: string,
  becomes: "new" | "old",
): Promise<AsyncDisposable> {
  const labels = ["release"];
  const { token } = (await mesh.http("/api/v2/devices", { body: { id, shadow: { tags: { labels } } } })).json;
  const device = await connectMqttDevice({ url: mesh.mqttUrl, id, token });
  const report = (ota: object) =>
    device.publish(`${id}/shadow/update`, JSON.stringify({ state: { reported: { ota } } }), 1);
  const executionsOf = async () =>
    (await mesh.http(`/api/v2/devices/${id}/executions`)).json as { readonly stage: string | null }[];
  await report({ fw_version: "1.0.0" });
  await device.subscribe(`${id}/shadow/delta`, 1);
  const updated = (async () => {
    const { payload } = await device.awaitMessage((message) => message.payload.includes('"url"'), 60_000);
    const { url, version, sha256 } = JSON.parse(payload).state.ota as Offer;
    const content = Buffer.from(await (await fetch(url)).arrayBuffer());
    expect(createHash("sha256").update(content).digest("hex")).toBe(sha256);
    await report({ fw_version: version });
    if (becomes === "new") return;
    await eventually(async () => (await executionsOf())[0]?.stage === "confirming");
    await report({ fw_version: "1.0.0" });
  })();
  return {
    async [Symbol.asyncDispose]() {
      await updated;
      await device.leave();
    },
  };
}

/** The command `devmesh-firmware`. */
export function firmwareRelease(shared: () => TestMesh): void {
  async function run(args: readonly string[], env: Record<string, string> = {}) {
    const { url, masterKey } = shared();
    await using command = startProcess(
      process.execPath,
      ["--disable-warning=ExperimentalWarning", program, ...args],
      { env: { ...process.env, DEVMESH_URL: url, DEVMESH_KEY: masterKey, ...env } },
    );
    return { code: await command.ended, output: command.output() };
  }

  describe("devmesh-firmware", () => {
    test("uploads, updates and ends with the outcome; a second run uses the upload", async () => {
      await using folder = await tempFolder();
      const file = join(folder.path, "sensor.bin");
      await writeFile(file, Buffer.alloc(300_000, "firmware"));
      await using _good = await connectUpdatable(shared(), "release-1", "new");
      const args = [file, "--version", "1.4.0", "--label", "release", "--stable"];
      const first = await run([...args, "PT0S"]);
      expect([first.code, first.output]).toEqual([0, expect.stringContaining("done: 1 of 1 succeeded")]);
      await using _bad = await connectUpdatable(shared(), "release-2", "old");
      const second = await run([...args, "PT10M"]);
      expect([second.code, second.output]).toEqual([1, expect.stringContaining("is there already")]);
      expect(second.output).toContain("done: 1 of 2 succeeded, 1 failed");
    });

    test("refuses another file under the version, an empty one, and devices that are none", async () => {
      await using folder = await tempFolder();
      const [file, other, empty] = ["sensor.bin", "other.bin", "empty.bin"].map((name) =>
        join(folder.path, name),
      ) as [string, string, string];
      await writeFile(file, "one");
      await writeFile(other, "other");
      await writeFile(empty, "");
      const args = ["--version", "2.0.0", "--name", "refused", "--label", "nobody"];
      const none = await run([file, ...args]);
      expect([none.code, none.output]).toEqual([
        1,
        expect.stringMatching(/\nNo device is to be updated.\n$/),
      ]);
      const another = await run([other, ...args]);
      expect([another.code, another.output]).toEqual([
        1,
        "There is another file as refused 2.0.0: raise the version.\n",
      ]);
      expect(await run([empty, ...args])).toMatchObject({ code: 1, output: `${empty} is empty.\n` });
    });

    test.each([
      [["--version", "1"], "One file is needed."],
      [["a", "--all"], "--version is needed."],
      [["a", "--version", "1"], "Either --label or --all is needed."],
      [["a", "--version", "1", "--all", "--via", "mail"], "--via takes shadow, url, push."],
      [["a", "--version", "1", "--all", "--stages", "1,500"], "--stages takes numbers from 1 to 100."],
    ])("refuses the command line %j", async (args, message) => {
      const { code, output } = await run(args);
      expect([code, output.split("\n")[0]]).toEqual([2, message]);
    });

    test("names the server that does not answer, and a missing key", async () => {
      const args = [program, "--version", "1", "--all"];
      const away = await run(args, { DEVMESH_URL: "http://127.0.0.1:9" });
      expect([away.code, away.output]).toEqual([1, expect.stringContaining("http://127.0.0.1:9")]);
      const keyless = await run(args, { DEVMESH_KEY: "" });
      expect([keyless.code, keyless.output]).toEqual([1, "DEVMESH_KEY is not set: it is a master key.\n"]);
    });
  });
}

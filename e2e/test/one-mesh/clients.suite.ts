import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { text } from "node:stream/consumers";
import { repository } from "@devmesh/supervisor/mesh/service-process";
import { eventually } from "@devmesh/testkit/eventually";
import type { TestMesh } from "@devmesh/testkit/mesh";
import { afterEach, beforeAll, describe, expect, test } from "@jest/globals";
import type { RestClient } from "../../src/rest-client.ts";
import { asMaster, enrolDevice } from "../../src/tenant.ts";

/** The README's examples of connecting a device, each run as it stands by the client it is written for. */
export function clients(shared: () => TestMesh): void {
  describe("clients of the README", () => {
    const readme = readFileSync(`${repository}/README.md`, "utf8");

    let mesh: TestMesh;
    let master: RestClient;
    const running: ChildProcess[] = [];

    beforeAll(async () => {
      mesh = shared();
      master = asMaster(mesh);
    });
    afterEach(async () => {
      await Promise.all(running.splice(0).map(end));
    });

    /** The first code block of a language after a mark of the README, for another device and this mesh. */
    function example(mark: string, language: string, deviceId: string): string {
      const rest = readme.slice(readme.indexOf(mark) + mark.length);
      const code = new RegExp(`\`\`\`${language}\n([\\s\\S]*?)\`\`\``).exec(rest)?.[1];
      if (!readme.includes(mark) || code === undefined)
        throw new Error(`the README has no ${language} below ${mark}`);
      return code.replaceAll("pump-1", deviceId).replaceAll("1883", String(mesh.ports.mqtt));
    }

    /** Runs a program with a device's token in its environment, until it ends or the test does. */
    function run(
      program: string,
      args: readonly string[],
      token: string,
    ): ChildProcess & { output(): string } {
      const child = spawn(program, [...args], {
        cwd: repository,
        env: { ...process.env, TOKEN: token },
        stdio: ["ignore", "pipe", "pipe"],
      });
      running.push(child);
      let output = "";
      for (const stream of [child.stdout, child.stderr]) {
        stream.setEncoding("utf8").on("data", (piece: string) => {
          output += piece;
        });
      }
      return Object.assign(child, { output: () => output });
    }

    async function end(child: ChildProcess): Promise<void> {
      if (child.exitCode !== null || child.signalCode !== null) return;
      const exit = once(child, "exit");
      child.kill("SIGKILL");
      await exit;
    }

    /** A test that needs a program of this machine; where it is missing, its name says so. */
    function testWith(client: string, isInstalled: boolean, name: string, check: () => Promise<void>): void {
      if (isInstalled) test(name, check, 30_000);
      else test.skip(`${name} (${client} is not installed)`, check);
    }

    function answers(program: string, args: readonly string[]): boolean {
      return spawnSync(program, args, { stdio: "ignore", timeout: 20_000 }).status === 0;
    }

    const hasMosquitto = ["mosquitto_pub", "mosquitto_sub"].every((tool) => answers("which", [tool]));
    const hasPaho = answers("python3", ["-c", "from paho.mqtt.client import CallbackAPIVersion"]);

    const setDesired = (id: string, app: unknown) =>
      master.post(`devices/${id}`, { shadow: { state: { desired: { app } } } });

    test("the token is read as the README says", async () => {
      const { token } = await enrolDevice(mesh, "token-reader");
      const commands = example("## Connect a device", "sh", "token-reader");
      const script = `API=${mesh.url}/api/v2 AUTH='Authorization: Bearer ${mesh.masterKey}'\n${commands}printf %s "$TOKEN"`;
      const shell = spawn("bash", ["-c", script], { stdio: ["ignore", "pipe", "inherit"] });
      expect(await text(shell.stdout)).toBe(token);
    });

    testWith("mosquitto", hasMosquitto, "mosquitto_pub stores a record", async () => {
      const { token } = await enrolDevice(mesh, "pub-pump");
      const [publish = ""] = example("**mosquitto**", "sh", "pub-pump").split("\n");
      const client = run("bash", ["-c", `exec ${publish}`], token);
      const [code] = await once(client, "exit");
      expect([code, client.output()]).toEqual([0, ""]);
      const records = await eventually(async () => {
        const { json } = await master.get("data?device_id=pub-pump");
        return json.length > 0 && json;
      });
      expect(records).toMatchObject([{ topic: "db/pub-pump/temperature", message: "21.5" }]);
    });

    testWith(
      "mosquitto",
      hasMosquitto,
      "mosquitto_sub gets the delta of a shadow that has changed",
      async () => {
        const { token } = await enrolDevice(mesh, "sub-pump");
        const [, subscribe = ""] = example("**mosquitto**", "sh", "sub-pump").split("\n");
        const client = run("bash", ["-c", `exec ${subscribe}`], token);
        await eventually(() => client.output().includes('"state":{}'));
        await setDesired("sub-pump", { on: true });
        await eventually(() => client.output().includes('"state":{"app":{"on":true}}'));
      },
    );

    testWith(
      "paho for Python",
      hasPaho,
      "paho answers calls, also one of a function it does not have",
      async () => {
        const { token } = await enrolDevice(mesh, "paho-pump");
        const client = run("python3", ["-c", example("**Python, paho**", "python", "paho-pump")], token);
        const sum = () => master.post("devices/paho-pump/rpc/sum", [2, 3]);
        const answer = await eventually(async () => {
          const { status, json } = await sum();
          if (status !== 200) throw new Error(`${status} ${JSON.stringify(json)} ${client.output()}`);
          return { json };
        });
        expect(answer.json).toBe(5);
        expect((await master.get("devices/paho-pump/rpc/Sys.GetInfo")).json.reason).toBe(
          "function_not_found",
        );
        expect([(await sum()).json, client.output()]).toEqual([5, ""]);
      },
    );

    test("MQTT.js reports what is desired, once for each change", async () => {
      const { token } = await enrolDevice(mesh, "js-pump");
      const client = run(
        process.execPath,
        ["--input-type=module", "--eval", example("**MQTT.js**", "js", "js-pump")],
        token,
      );
      for (const on of [true, false]) {
        await setDesired("js-pump", { on });
        await eventually(async () => {
          const { shadow } = (await master.get("devices/js-pump")).json;
          if (shadow.state.delta !== undefined || shadow.state.reported.app?.on !== on)
            throw new Error(`${JSON.stringify(shadow)} ${client.output()}`);
          return true;
        });
      }
      // Two changes by the master key, two reports.
      expect((await master.get("devices/js-pump")).json.shadow.version).toBe(4);
    });
  });
}

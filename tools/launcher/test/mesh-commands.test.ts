import { join } from "node:path";
import { repository } from "@devmesh/supervisor/mesh/service-process";
import { eventually } from "@devmesh/testkit/eventually";
import { startMesh, type TestMesh } from "@devmesh/testkit/mesh";
import { startProcess, type TestProcess } from "@devmesh/testkit/process";
import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";

const started: TestProcess[] = [];

/** A command of `package.json`, run in a folder of the repository against the mesh of a data folder. */
function command(
  script: string,
  args: readonly string[],
  dataDir: string,
  folder = ".",
  more: NodeJS.ProcessEnv = {},
): TestProcess {
  const launcher = join(repository, "tools/launcher/run.mjs");
  const child = startProcess(process.execPath, [launcher, script, ...args], {
    cwd: join(repository, folder),
    env: { ...process.env, DATA_DIR: dataDir, ...more },
  });
  started.push(child);
  return child;
}

describe("beside a mesh that runs without its mailer", () => {
  let mesh: TestMesh;
  beforeAll(async () => {
    mesh = await startMesh({ args: ["--without", "mailer"] });
  }, 120_000);
  afterAll(async () => {
    for (const { child } of started) child.kill();
    await mesh?.stop();
  });

  test("npm run device runs a device that is made, answers calls, and leaves at Ctrl-C", async () => {
    const device = command("device", ["lamp-7", "--kind", "lamp"], mesh.dataDir);
    await eventually(() => device.output() === "lamp-7 is connected\n");
    const call = () => mesh.http("/api/v2/devices/lamp-7/rpc/Led.Set", { body: { on: true } });
    // Its presence follows from an event of the broker.
    await eventually(async () => (await call()).json?.on === true);
    expect(await device.end()).toBe(0);
    await eventually(async () => (await call()).status === 409);
  });

  test("npm run device makes a pump of a device that has neither name nor tags, and of no other", async () => {
    await mesh.http("/api/v2/devices", { body: { id: "pump-7" } });
    await mesh.http("/api/v2/devices", { body: { id: "pump-8", name: "Ours" } });
    for (const id of ["pump-7", "pump-8"]) {
      const device = command("device", [id], mesh.dataDir);
      await eventually(() => device.output() === `${id} is connected\n`);
      await eventually(async () => (await mesh.http(`/api/v2/data?device_id=${id}`)).json.length > 0);
      await device.end();
    }
    const { name, shadow } = (await mesh.http("/api/v2/devices/pump-7")).json;
    expect([name, shadow.tags.labels, shadow.tags.units["pump#/flow"]]).toEqual([
      "Cellar pump",
      ["pump", "simulated"],
      "l/min",
    ]);
    expect(shadow.state.reported).toMatchObject({ app: { mode: "auto", target_bar: 3 } });
    const [record] = (await mesh.http("/api/v2/data?device_id=pump-7&filter=db/pump-7/pump")).json;
    expect(Object.keys(JSON.parse(record.message))).toEqual(["flow", "pressure", "motor", "power"]);
    expect((await mesh.http("/api/v2/devices/pump-8")).json).toMatchObject({
      name: "Ours",
      shadow: { tags: {} },
    });
  });

  test("npm run device takes the key of DEVMESH_KEY before that of the data folder", async () => {
    const DEVMESH_KEY = `mk_${"0".repeat(32)}`;
    const device = command("device", ["lamp-8"], mesh.dataDir, ".", { DEVMESH_KEY });
    expect(await device.ended).toBe(1);
    expect(device.output()).toBe("lamp-8 could not be created: HTTP status 401\n");
  });

  test("npm run device refuses a malformed key without quoting it", async () => {
    const device = command("device", ["lamp-8"], mesh.dataDir, ".", { DEVMESH_KEY: "mk_sec\nret" });
    expect(await device.ended).toBe(1);
    expect(device.output()).toBe("DEVMESH_KEY holds no API key.\n");
  });

  test("npm run dev runs the service that is missing until it is stopped", async () => {
    const deadMail = () => mesh.http("/api/v2/mail/dead");
    expect((await deadMail()).status).toBe(503);
    const mailer = command("dev", [], mesh.dataDir, "services/mailer");
    await eventually(async () => (await deadMail()).status === 200, { everyMs: 100 });
    await mailer.end();
    expect((await deadMail()).status).toBe(503);
  });

  test("npm run dev refuses a service whose store the mesh holds, and a folder that is no service's", async () => {
    const keys = command("dev", [], mesh.dataDir, "services/keys");
    expect(await keys.ended).toBe(1);
    expect(keys.output()).toBe(
      "The mesh runs keys already, and an SQLite file serves one process: start the mesh with npm start -- --without keys, or give both a MongoDB by STORE_URL.\n",
    );
    const docs = command("dev", [], mesh.dataDir, "docs");
    expect(await docs.ended).toBe(1);
    expect(docs.output()).toBe("Run it for one service: npm run dev -w services/NAME\n");
  });

  const inYard = ({ id }: { readonly id: string }) => id.startsWith("yard-");
  const devicesInYard = async (query = ""): Promise<string[]> =>
    (await mesh.http(`/api/v2/devices${query}`)).json.filter(inYard).map(({ id }: { id: string }) => id);

  test("npm run fleet connects devices that answer, follow their shadows and publish, leaves at Ctrl-C and removes what it made", async () => {
    await mesh.http("/api/v2/devices", { body: { id: "yard-0009", name: "a device of the user" } });
    const fleet = command("fleet", ["--devices", "6", "--prefix", "yard"], mesh.dataDir);
    await eventually(() => /^6 of 6 connected, /m.test(fleet.output()));
    await eventually(async () => (await devicesInYard("?online=true")).length === 6);
    expect((await mesh.http("/api/v2/devices/yard-0001/rpc/sum", { body: [2, 3] })).json).toBe(5);
    const meter = (await mesh.http("/api/v2/devices/yard-0003")).json;
    expect([meter.name, meter.shadow.tags, meter.shadow.state.reported.ota]).toEqual([
      "Main meter 1, Malmö",
      {
        labels: ["meter", "malmo"],
        units: expect.objectContaining({ "meter#/power": "W" }),
        fleet: "yard",
      },
      { fw_version: "1.12.0" },
    ]);
    await mesh.http("/api/v2/devices/yard-0001/rpc/RPC.List");
    expect((await mesh.http("/api/v2/devices/yard-0001/rpc/Nothing")).status).toBe(404);
    await eventually(() => /, 3 calls, /.test(fleet.output()));
    await mesh.http("/api/v2/devices/yard-0003/token", { method: "POST" });
    await eventually(() => /; refused: \d+ wrong_password$/m.test(fleet.output()));
    await mesh.http("/api/v2/devices/yard-0002", {
      body: { shadow: { state: { desired: { app: { target: 6 } } } } },
    });
    await eventually(async () => {
      const { shadow } = (await mesh.http("/api/v2/devices/yard-0002")).json;
      return shadow.state.reported.app.target === 6;
    });
    await eventually(async () => {
      const records: readonly { readonly device_id: string }[] = (await mesh.http("/api/v2/data")).json;
      const ids = new Set(records.map(({ device_id }) => device_id));
      return [...ids].filter((id) => inYard({ id })).length === 6;
    });
    expect(await fleet.end()).toBe(0);
    await eventually(async () => (await devicesInYard("?online=true")).length === 0);
    const removal = command("fleet", ["--remove", "--prefix", "yard"], mesh.dataDir);
    expect(await removal.ended).toBe(0);
    expect(removal.output()).toBe("6 devices are deleted\n");
    expect(await devicesInYard()).toEqual(["yard-0009"]);
  }, 240_000);

  test("npm run fleet --flaky has devices that drop their connections, send garbage, and come back", async () => {
    const fleet = command("fleet", ["--devices", "8", "--flaky", "--seed", "7"], mesh.dataDir);
    const struck =
      /8 of 8 connected, .*; [1-9]\d* connections dropped, [1-9]\d* garbage, 0 calls answered badly/;
    await eventually(() => struck.test(fleet.output()));
    expect(await fleet.end()).toBe(0);
    expect((await mesh.http("/api/v2/devices")).status).toBe(200);
  });
});

describe("without a mesh", () => {
  const nowhere = "/nonexistent/devmesh";

  test.each([
    ["device", ["lamp-7"], "."],
    ["fleet", ["--devices", "2"], "."],
    ["dev", [], "services/data"],
  ])("%s says so in one sentence", async (script, args, folder) => {
    const { ended, output } = command(script, args, nowhere, folder);
    expect(await ended).toBe(1);
    expect(output()).toBe(
      `No mesh runs with the data folder ${nowhere}: start one with npm start, or set DATA_DIR.\n`,
    );
  });

  test.each([[[]], [["a", "b"]], [["no/id"]], [["lamp-7", "--kind", "toaster"]], [["--nonsense"]]])(
    "device %j gets the usage and exit code 2",
    async (args) => {
      const { ended, output } = command("device", args, nowhere);
      expect(await ended).toBe(2);
      expect(output()).toContain("Usage: npm run device");
    },
  );

  test.each([
    [["--devices", "0"], "--devices takes a number from 1 to 9999."],
    [["--devices", "many"], "--devices takes a number from 1 to 9999."],
    [["--seed", "3"], "--seed needs --flaky."],
    [["--flaky", "--seed", "-"], "--seed takes a number from 0 to 4294967295."],
    [["--prefix", "no/id"], "No device id can begin with no/id."],
    [["--remove", "--devices", "2"], "--remove goes with --prefix alone."],
    [["--nonsense"], "Unknown option '--nonsense'"],
  ])("fleet %j says what is wrong and exits with 2", async (args, wrong) => {
    const { ended, output } = command("fleet", args, nowhere);
    expect(await ended).toBe(2);
    expect(output().startsWith(wrong)).toBe(true);
    expect(output()).toContain("Usage: npm run fleet");
  });
});

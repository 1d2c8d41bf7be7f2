import { release } from "@devmesh/contracts/release";
import { expect, test } from "@jest/globals";
import { dataFolder } from "../src/mesh/data-folder.ts";
import { welcome } from "../src/welcome.ts";

const mesh = {
  url: "http://127.0.0.1:8080",
  mqttUrl: "mqtt://127.0.0.1:1883",
  folder: dataFolder("/data"),
  stop: async () => undefined,
};

test.each([true, false])("names the release, and the one variable of the key (demo: %s)", (demo) => {
  const lines = welcome({ mesh, masterKey: "mk_x", firstStart: false, demo }).split("\n");
  expect(lines).toContain(`Devmesh     ${release}`);
  expect(lines).toContain("  export DEVMESH_KEY=$(cat /data/master-key)");
  const calls = lines.filter((line) => line.includes("curl"));
  expect(calls.length).toBeGreaterThan(2);
  for (const call of calls) expect(call).toContain('-H "Authorization: Bearer $DEVMESH_KEY"');
});

import { release } from "@devmesh/contracts/release";
import { expect, test } from "@jest/globals";
import { dataFolder } from "../src/mesh/data-folder.ts";
import { welcome } from "../src/welcome.ts";

const options = {
  url: "http://127.0.0.1:8080",
  mqttUrl: "mqtt://127.0.0.1:1883",
  folder: dataFolder("/data"),
  masterKey: "mk_x",
  showsKey: false,
  demo: false,
  container: null,
};

test.each([true, false])("names the release, and the one variable of the key (demo: %s)", (demo) => {
  const lines = welcome({ ...options, demo }).split("\n");
  expect(lines).toContain(`Devmesh     ${release}`);
  expect(lines).toContain("  export DEVMESH_KEY=$(cat /data/master-key)");
  const calls = lines.filter((line) => line.includes("curl"));
  expect(calls.length).toBeGreaterThan(2);
  for (const call of calls) {
    expect(call).toContain('-H "Authorization: Bearer $DEVMESH_KEY"');
    // Without a line's end the next prompt follows on the line of the answer.
    expect(call).toContain("curl -sS -w '\\n' ");
  }
});

test("in a container shows how to read the key and the logs there", () => {
  const lines = welcome({ ...options, container: "3f2a" }).split("\n");
  expect(lines).toContain("Master key  in /data/master-key");
  expect(lines).toContain("  export DEVMESH_KEY=$(docker exec 3f2a cat /data/master-key)");
  expect(lines).toContain("Logs        /data/logs  (docker exec 3f2a node supervisor/src/logs.ts)");
});

import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { freePort } from "@devmesh/testkit/free-port";
import { expect, test } from "@jest/globals";

const run = promisify(execFile);

test.each(["127.0.0.1", "[::1]"])(
  "connecting to %s does without url.parse, of which Node warns in a bundle",
  async (server) => {
    const port = await freePort();
    const script = `
      import url from "node:url";
      url.parse = () => { throw new Error("url.parse is deprecated"); };
      const { connectMqtt } = await import(${JSON.stringify(import.meta.resolve("../src/mqtt-link.ts"))});
      const client = connectMqtt({ user: "u", password: "p" }, "mqtt://${server}:${port}", "c");
      client.on("error", ({ code, port }) => console.log(code, port));
      client.on("close", () => client.end(true));`;
    const { stdout } = await run(process.execPath, [
      "--disable-warning=ExperimentalWarning",
      "--input-type=module",
      "--eval",
      script,
    ]);
    // The second where the machine has no IPv6.
    expect([`ECONNREFUSED ${port}`, `EADDRNOTAVAIL ${port}`]).toContain(stdout.trim());
  },
);

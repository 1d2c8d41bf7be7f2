import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { freePort } from "@devmesh/testkit/free-port";
import type { TestMesh } from "@devmesh/testkit/mesh";
import { tempFolder } from "@devmesh/testkit/temp-folder";
import { expect, test } from "@jest/globals";
import { codeBlocks, commandsTimeMs, patternOf, runCommands } from "./documented-commands.ts";

/** Commands of a document, for a mesh. */
function forMesh(mesh: TestMesh, commands: readonly string[]): string {
  return commands
    .join("")
    .replaceAll("http://127.0.0.1:8080", mesh.url)
    .replaceAll(".data/master-key", `${mesh.dataDir}/master-key`);
}

/** What the README and the guide to an update show. The mesh has no device `pump-1` before. */
export function readme(shared: () => TestMesh): void {
  test(
    "the commands under Try give the answers that the README shows",
    async () => {
      const mesh = shared();
      const answers = (await codeBlocks("README.md", "Try", "json")).flatMap((block) =>
        block.trim().split("\n"),
      );
      // A reader takes some seconds from one block to the next: the device reports and publishes meanwhile.
      const blocks = await codeBlocks("README.md", "Try", "sh");
      const commands = forMesh(mesh, [blocks.join("sleep 3\n")]);
      expect(commands.match(/^curl /gm)).toHaveLength(answers.length);
      const { code, lines } = await runCommands(mesh, commands);
      expect([code, lines]).toEqual([0, expect.arrayContaining(["pump-1 is connected"])]);
      expect(lines.filter((line) => line !== "pump-1 is connected")).toEqual(
        answers.map((answer) => expect.stringMatching(patternOf(answer))),
      );
    },
    commandsTimeMs,
  );

  test(
    "the guide to an update ends as it says, with one pump that goes back",
    async () => {
      const mesh = shared();
      const guide = "docs/operations/update-a-fleet.md";
      const [fleet = "", ...others] = await codeBlocks(guide, "Try it", "sh");
      const shown = await codeBlocks(guide, "Try it", "text");
      // A reader waits some seconds, which a busy machine makes longer.
      const online = `curl -sS -H "Authorization: Bearer ${mesh.masterKey}" "${mesh.url}/api/v2/devices?filter=fleet-&online=true"`;
      const connected = `until [ "$(${online} | grep -o '"id":"fleet-' | wc -l)" -eq 10 ]; do sleep 1; done\n`;
      const commands = others.join("").replace("sleep 10\n", connected);
      const { code, lines } = await runCommands(
        mesh,
        `${fleet}${commands}npm run --silent fleet -- --remove`,
      );
      expect([code, lines]).toEqual([0, expect.arrayContaining(["10 devices are deleted"])]);
      for (const line of shown.flatMap((block) => block.trim().split("\n")))
        expect(lines).toEqual(expect.arrayContaining([expect.stringMatching(patternOf(line))]));
    },
    commandsTimeMs,
  );
}

/** What the guides show that receive webhooks. */
export function webhookGuides(shared: () => TestMesh): void {
  test(
    "the guide to records ends with those of a pump, which its receiver has verified",
    async () => {
      const mesh = shared();
      const guide = "docs/operations/receive-records.md";
      await using folder = await tempFolder();
      const port = String(await freePort());
      const file = join(folder.path, "receiver.mjs");
      const [receiver = ""] = await codeBlocks(guide, "Try it", "js");
      const library = JSON.stringify(import.meta.resolve("standardwebhooks"));
      await writeFile(file, receiver.replace('"standardwebhooks"', library).replace("8000", port));
      const commands = forMesh(mesh, await codeBlocks(guide, "Try it", "sh"))
        .replace("8000", port)
        .replace("receiver.mjs", file);
      const { code, lines } = await runCommands(mesh, commands);
      const [shown = ""] = await codeBlocks(guide, "Try it", "text");
      expect([code, lines]).toEqual([0, expect.arrayContaining(["cellar-pump is connected"])]);
      expect(lines).toEqual(expect.arrayContaining([expect.stringMatching(patternOf(shown.trim()))]));
    },
    commandsTimeMs,
  );

  test(
    "the guide to chats ends with the message about a silent device",
    async () => {
      const mesh = shared();
      const guide = "docs/operations/tell-a-chat.md";
      await using folder = await tempFolder();
      const said = join(folder.path, "chat.log");
      const port = String(await freePort());
      const commands = forMesh(mesh, await codeBlocks(guide, "Try it", "sh"))
        .replaceAll("8002", port)
        .replace('"127.0.0.1")\' &', `"127.0.0.1")' > ${said} &`)
        .replace("sleep 30\n", `until grep -q Firing ${said}; do sleep 1; done\n`);
      const { code } = await runCommands(mesh, commands);
      const [shown = ""] = await codeBlocks(guide, "Try it", "text");
      const lines = (await readFile(said, "utf8")).trim().split("\n");
      expect([code, lines]).toEqual([
        0,
        shown
          .trim()
          .split("\n")
          .map((line) => expect.stringMatching(patternOf(line))),
      ]);
    },
    commandsTimeMs,
  );
}

import type { TestMesh } from "@devmesh/testkit/mesh";
import { expect, test } from "@jest/globals";
import { codeBlocks, patternOf, runCommands } from "./documented-commands.ts";

/** What the README and the guides show. The mesh has no device `pump-1` before. */
export function readme(shared: () => TestMesh): void {
  test("the commands under Try give the answers that the README shows", async () => {
    const mesh = shared();
    const answers = (await codeBlocks("README.md", "Try", "json")).flatMap((block) =>
      block.trim().split("\n"),
    );
    // A reader takes some seconds from one block to the next: the device reports and publishes meanwhile.
    const commands = (await codeBlocks("README.md", "Try", "sh"))
      .join("sleep 3\n")
      .replaceAll("http://127.0.0.1:8080", mesh.url)
      .replaceAll(".data/master-key", `${mesh.dataDir}/master-key`);
    expect(commands.match(/^curl /gm)).toHaveLength(answers.length);
    const { code, lines } = await runCommands(mesh, commands);
    expect([code, lines]).toEqual([0, expect.arrayContaining(["pump-1 is connected"])]);
    expect(lines.filter((line) => line !== "pump-1 is connected")).toEqual(
      answers.map((answer) => expect.stringMatching(patternOf(answer))),
    );
  }, 60_000);

  test("the guide to an update ends as it says, with one pump that goes back", async () => {
    const mesh = shared();
    const guide = "docs/operations/update-a-fleet.md";
    const [fleet = "", ...others] = await codeBlocks(guide, "Try it", "sh");
    const shown = await codeBlocks(guide, "Try it", "text");
    // A reader waits some seconds, which a busy machine makes longer.
    const online = `curl -sS -H "Authorization: Bearer ${mesh.masterKey}" "${mesh.url}/api/v2/devices?filter=fleet-&online=true"`;
    const connected = `until [ "$(${online} | grep -o '"id":"fleet-' | wc -l)" -eq 10 ]; do sleep 1; done\n`;
    const commands = others.join("").replace("sleep 10\n", connected);
    const { code, lines } = await runCommands(mesh, `${fleet}${commands}npm run --silent fleet -- --remove`);
    expect([code, lines]).toEqual([0, expect.arrayContaining(["10 devices are deleted"])]);
    for (const line of shown.flatMap((block) => block.trim().split("\n")))
      expect(lines).toEqual(expect.arrayContaining([expect.stringMatching(patternOf(line))]));
  }, 180_000);
}

import { type BoardPanel, boardBounds } from "@devmesh/contracts/model/board";
import { ServiceError } from "@devmesh/service-kit/errors";
import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import { call, type DevicesFixture, startDevicesFixture } from "./devices-fixture.ts";

const panel: BoardPanel = {
  kind: "value",
  device_ids: ["pump"],
  topic: "temp",
  pointer: "/celsius",
  fn: "last",
  range: "P1D",
  x: 0,
  y: 0,
  w: 3,
  h: 2,
};

describe("boards", () => {
  let mesh: DevicesFixture;
  beforeAll(async () => {
    mesh = await startDevicesFixture();
    await mesh.start();
  });
  afterAll(async () => await mesh[Symbol.asyncDispose]());

  const create = (name: string, panels: BoardPanel[] = []) =>
    mesh.devices.createBoard({ name, panels }, call());
  const read = (id: string) => mesh.devices.readBoard({ id }, call());
  const remove = (id: string) => mesh.devices.deleteBoard({ id }, call());
  const list = () => mesh.devices.listBoards({}, call());
  const reasonOf = async (answer: Promise<unknown>) =>
    await answer.then(
      () => null,
      (error: unknown) => (error instanceof ServiceError ? error.reason : error),
    );

  test("are created, listed without panels, changed and deleted", async () => {
    const wall = await create("Wall", [panel]);
    const hall = await create("Hall");
    expect(await read(wall.id)).toEqual(wall);
    expect(await list()).toEqual([
      { ...wall, panels: 1 },
      { ...hall, panels: 0 },
    ]);
    const moved = await mesh.devices.patchBoard({ id: wall.id, panels: [{ ...panel, x: 3 }] }, call());
    expect(moved).toMatchObject({ name: "Wall", revision: 2, panels: [{ x: 3 }] });
    expect(await read(wall.id)).toEqual(moved);
    for (const { id } of [wall, hall]) await remove(id);
    expect(await list()).toEqual([]);
    expect(await reasonOf(read(wall.id))).toBe("board_not_found");
    expect(await reasonOf(remove(wall.id))).toBe("board_not_found");
    expect(await reasonOf(mesh.devices.patchBoard({ id: wall.id }, call()))).toBe("board_not_found");
  });

  test("are changed at a named revision alone; without one no change at the same time is lost", async () => {
    const { id } = await create("Wall");
    const rename = (name: string, revision: number) =>
      mesh.devices.patchBoard({ id, name, revision }, call());
    const answers = await Promise.all(["a", "b", "c"].map((name) => reasonOf(rename(name, 1))));
    expect(answers.toSorted()).toEqual(["board_changed", "board_changed", null]);
    await mesh.devices.patchBoard({ id, name: "Hall" }, call());
    await Promise.all([
      mesh.devices.patchBoard({ id, name: "Attic" }, call()),
      mesh.devices.patchBoard({ id, panels: [panel] }, call()),
    ]);
    expect(await read(id)).toMatchObject({ name: "Attic", panels: [panel], revision: 5 });
    await remove(id);
  });

  test("are no more than there may be, also when many are created at one time", async () => {
    const names = Array.from({ length: boardBounds.boards + 5 }, (_, nth) => `Board ${nth}`);
    const refused = (await Promise.all(names.map((name) => reasonOf(create(name))))).filter(Boolean);
    expect(refused).toEqual(Array(5).fill("too_many_boards"));
    expect(await list()).toHaveLength(boardBounds.boards);
  });
});

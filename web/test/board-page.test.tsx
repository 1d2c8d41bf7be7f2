import type { Board } from "@devmesh/contracts/model/board";
import { beforeEach, describe, expect, test } from "@jest/globals";
import { screen, waitFor } from "@testing-library/react";
import { Route } from "wouter";
import { Toasts } from "../src/components/toast.tsx";
import { BoardPage } from "../src/features/boards/board-page.tsx";
import { problem, showPage, type TestRoutes } from "./show.tsx";

const warmest: Board["panels"][number] = {
  kind: "value",
  title: "Warmest",
  where: {},
  topic: "air",
  pointer: "/celsius",
  fn: "max",
  range: "P1D",
  x: 0,
  y: 0,
  w: 3,
  h: 2,
};
const saved: Board = {
  id: "b1",
  name: "Cold chain",
  revision: 3,
  created_at: "2026-03-01T00:00:00.000Z",
  changed_at: "2026-03-01T00:00:00.000Z",
  panels: [warmest],
};
const numbers = {
  every: "PT3M",
  from: "2026-03-01T00:00:00.000Z",
  until: "2026-03-02T00:00:00.000Z",
  fn: ["max"],
  partial: true,
  series: [
    { device_id: "fridge", topic: "air", pointer: "/celsius", points: [["2026-03-01T12:00:00.000Z", 8.5]] },
  ],
};

/** A server with this board, whose changes it answers. */
function server(change: TestRoutes[string], board: () => Board = () => saved): TestRoutes {
  return {
    "GET /api/v2/boards/b1": () => [200, board()],
    "POST /api/v2/boards/b1": change,
    "GET /api/v2/series": () => [200, numbers],
    "GET /api/v2/devices": () => [200, []],
  };
}

const page = (
  <Route path="/boards/:id">
    <BoardPage />
  </Route>
);

beforeEach(() => window.history.replaceState(null, "", "/boards/b1?edit=1"));

describe("the page of a board", () => {
  test("shows a value with what it is of", async () => {
    await using shown = await showPage(
      page,
      server(() => [500]),
    );
    await screen.findByText("8.5");
    screen.getByText("Max, last 24 h · fridge");
    expect(shown.requests.find((each) => each.startsWith("GET /api/v2/series"))).toMatch(
      /where=%7B%7D&topic=air&pointer=%2Fcelsius&from=[^&]+&fn=max$/,
    );
  });

  test("saves changes in their order, each with the revision that the one before made", async () => {
    const sent: unknown[] = [];
    let revision = 3;
    await using shown = await showPage(
      page,
      server((body: Partial<Board>) => {
        sent.push([body.revision, body.panels?.map(({ x }) => x)]);
        revision += 1;
        return [200, { ...saved, ...body, revision }];
      }),
    );
    (await screen.findByRole("button", { name: "Arrange Warmest" })).focus();
    await shown.user.keyboard("{Shift>}{ArrowRight}{ArrowRight}{ArrowRight}{/Shift}");
    await screen.findByText("Warmest: column 4, row 1, 3 wide, 2 high");
    await waitFor(() => expect(sent.at(-1)).toEqual([revision - 1, [3]]));
    expect(sent[0]).toEqual([3, [1]]);
  });

  test("shows what somebody else made of the board, when that came first", async () => {
    let board = saved;
    await using shown = await showPage(
      page,
      server(
        () => {
          board = { ...saved, name: "Cold chain, north", revision: 4 };
          return [409, problem("board_changed", 409)];
        },
        () => board,
      ),
    );
    (await screen.findByRole("button", { name: "Arrange Warmest" })).focus();
    await shown.user.keyboard("{Shift>}{ArrowRight}{/Shift}");
    await screen.findByText("Somebody else changed the board");
    await screen.findByRole("heading", { level: 1, name: "Cold chain, north" });
    await waitFor(() => expect(columnOf("Warmest")).toBe("1 / span 3"));
  });

  test("keeps a change that was not saved, and saves it again", async () => {
    let isAway = true;
    await using shown = await showPage(
      page,
      server((body: Partial<Board>) =>
        isAway ? [503, problem("unavailable", 503)] : [200, { ...saved, ...body, revision: 4 }],
      ),
    );
    (await screen.findByRole("button", { name: "Arrange Warmest" })).focus();
    await shown.user.keyboard("{Shift>}{ArrowRight}{/Shift}");
    await screen.findByText("The board was not saved");
    expect(columnOf("Warmest")).toBe("2 / span 3");
    isAway = false;
    await shown.user.click(screen.getByRole("button", { name: "Try again" }));
    await waitFor(() => expect(screen.queryByText("The board was not saved")).toBeNull());
    expect(columnOf("Warmest")).toBe("2 / span 3");
  });

  test("puts a panel back that was removed by mistake", async () => {
    let board = saved;
    await using shown = await showPage(
      <>
        {page}
        <Toasts />
      </>,
      server(
        (body: Partial<Board>) => {
          board = { ...board, ...body, revision: board.revision + 1 };
          return [200, board];
        },
        () => board,
      ),
    );
    await shown.user.click(await screen.findByRole("button", { name: "Remove Warmest" }));
    await screen.findByText("No panels yet");
    await waitFor(() => expect(board.panels).toEqual([]));
    await shown.user.click(screen.getByRole("button", { name: "Undo" }));
    await waitFor(() => expect(board.panels).toEqual([warmest]));
    screen.getByRole("region", { name: "Warmest" });
  });

  test("saves an edit that began while a change before it was being saved", async () => {
    let board: Board = { ...saved, panels: [warmest, { ...warmest, title: "Coldest", fn: "min", y: 2 }] };
    const begun = Promise.withResolvers<void>();
    await using shown = await showPage(
      page,
      server(
        async (body: Partial<Board>) => {
          if (board.revision === 3) await begun.promise;
          if (body.revision !== board.revision) return [409, problem("board_changed", 409)];
          board = { ...board, ...body, revision: board.revision + 1 };
          return [200, board];
        },
        () => board,
      ),
    );
    await shown.user.click(await screen.findByRole("button", { name: "Remove Coldest" }));
    await shown.user.click(screen.getByRole("button", { name: "Edit Warmest" }));
    const title = await screen.findByLabelText("Title");
    begun.resolve();
    await waitFor(() => expect(board.revision).toBe(4));
    await shown.user.clear(title);
    await shown.user.type(title, "Hottest");
    await shown.user.click(screen.getByRole("button", { name: "Save" }));
    await waitFor(() => expect(board.panels.map((panel) => panel.title)).toEqual(["Hottest"]));
    expect(screen.queryByText("Somebody else changed the board")).toBeNull();
  });
});

describe("a board on a wall", () => {
  test("has a clock, and says since when its numbers are not live, until they are again", async () => {
    window.history.replaceState(null, "", "/boards/b1?full=1");
    let isAway = false;
    const routes = server(() => [500]);
    await using shown = await showPage(page, {
      ...routes,
      "GET /api/v2/series": () => (isAway ? [503, problem("unavailable", 503)] : [200, numbers]),
    });
    await screen.findByText("8.5");
    screen.getByText("Live");
    screen.getByText(/^\d{1,2}:\d{2}/);
    isAway = true;
    await screen.findByText(/^Not live since \d{1,2}:\d{2}/, {}, { timeout: 120_000 });
    screen.getByText("8.5");
    isAway = false;
    await screen.findByText("Live", {}, { timeout: 120_000 });
    expect(shown.requests.some((each) => each.startsWith("GET /api/v2/series"))).toBe(true);
  }, 300_000);
});

function columnOf(title: string): string {
  return screen.getByRole("region", { name: title }).style.gridColumn;
}

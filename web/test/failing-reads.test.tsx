import { expect, test } from "@jest/globals";
import { screen } from "@testing-library/react";
import { useApi } from "../src/api/api-context.tsx";
import { useReading } from "../src/api/use-reading.ts";
import { Failure } from "../src/components/failure.tsx";
import { JobsTab } from "../src/features/jobs/jobs-tab.tsx";
import { problem, showPage } from "./show.tsx";

const hanging = { ...problem("deadline_exceeded", 504), service: "jobs" };

test("a list says which service gave no answer while it is read again, and shows what then comes", async () => {
  const answer = Promise.withResolvers<void>();
  let requests = 0;
  await using page = await showPage(<JobsTab />, {
    "GET /api/v2/jobs": async () => {
      requests += 1;
      if (requests === 1) return [504, hanging];
      await answer.promise;
      return [200, []];
    },
  });
  await screen.findByText("The service jobs gave no answer in time.");
  await page.user.click(screen.getByRole("button", { name: "Try again" }));
  screen.getByText("The service jobs gave no answer in time.");
  expect(screen.queryByRole("table")).toBeNull();
  answer.resolve();
  await screen.findByText("There are no jobs yet");
  expect(screen.queryByRole("alert")).toBeNull();
});

test("what was read stays beside the failure of a later reading, which ends with a success", async () => {
  const counted = (total: number) => [200, { total, facets: {}, others: {} }] as const;
  const answers = [counted(7), [504, hanging] as const, counted(8)];
  await using page = await showPage(<DeviceCount />, {
    "GET /api/v2/device_facets": () => answers.shift() ?? [500],
  });
  await screen.findByText("7 devices");
  await page.user.click(screen.getByRole("button", { name: "Count" }));
  await screen.findByText("The service jobs gave no answer in time.");
  screen.getByText("7 devices");
  await page.user.click(screen.getByRole("button", { name: "Try again" }));
  await screen.findByText("8 devices");
  expect(screen.queryByRole("alert")).toBeNull();
});

function DeviceCount() {
  const api = useApi();
  const { data, error, refetch } = useReading({
    queryKey: ["count"],
    queryFn: ({ signal }) => api.call("facetDevices", { query: { facets: ["version"] }, signal }),
  });
  return (
    <>
      <Failure error={error} title="They were not counted" onRetry={() => void refetch()} />
      <p>{data?.total} devices</p>
      <button type="button" onClick={() => void refetch()}>
        Count
      </button>
    </>
  );
}

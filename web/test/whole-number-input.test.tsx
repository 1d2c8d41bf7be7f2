import { afterEach, expect, test } from "@jest/globals";
import { screen } from "@testing-library/react";
import { chooseLocale } from "../src/components/locale.ts";
import { WholeNumberInput } from "../src/components/whole-number-input.tsx";
import { showPage } from "./show.tsx";

afterEach(() => chooseLocale(""));

test.each([
  ["en-US", "10,000", "25,000"],
  ["de-DE", "10.000", "25.000"],
])("a whole number in a field has the groups of %s, also as it is typed", async (locale, shown, typed) => {
  chooseLocale(locale);
  const changes: unknown[] = [];
  await using page = await showPage(
    <WholeNumberInput label="Timeout" defaultValue={10_000} onChange={(value) => changes.push(value)} />,
    {},
  );
  const field = screen.getByLabelText<HTMLInputElement>("Timeout");
  expect(field.value).toBe(shown);
  await page.user.clear(field);
  await page.user.type(field, "25000");
  expect(field.value).toBe(typed);
  expect(changes.at(-1)).toBe(25_000);
});

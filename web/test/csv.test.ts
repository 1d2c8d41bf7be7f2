import { expect, test } from "@jest/globals";
import { csvOf } from "../src/components/csv.ts";

test("a file has quotes where it must, and no formula of a device, but its numbers", () => {
  expect(
    csvOf([
      ["id", "a,b"],
      ['say "x"', "=1+1"],
      ["-5.2", "@cmd"],
      ["\t=1+1", "1;=1+1"],
      ["\uff1d1", "\r-1+1"],
    ]),
  ).toBe(
    'id,"a,b"\r\n"say ""x""",\'=1+1\r\n-5.2,\'@cmd\r\n\'\t\'=1+1,1;\'=1+1\r\n\'\uff1d1,"\'\r\'-1+1"\r\n',
  );
});

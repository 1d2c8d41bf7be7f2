import { expect, test } from "@jest/globals";
import { forReading } from "../src/reference/for-reading.ts";

test("the page's document has a type beside null as one type, and sends the key to its own origin in a header", () => {
  const name = { anyOf: [{ type: "string", maxLength: 9 }, { type: "null" }], description: "Its name." };
  const other = { anyOf: [{ type: "string" }, { type: "number" }] };
  const referring = { anyOf: [{ $ref: "#/x" }, { type: "null" }] };
  const both = [{ bearer: [] }, { access_token: [] }];
  const document = {
    info: { title: "Devmesh", version: "1" },
    servers: [],
    paths: { "/a": { get: { security: both }, post: { summary: "Open" } } },
    components: {
      securitySchemes: { bearer: { type: "http" }, access_token: { type: "apiKey" } },
      schemas: [{ name, other, referring }],
    },
  };
  expect(forReading(document, "http://here")).toEqual({
    info: { title: "Overview", version: "1" },
    servers: [{ url: "http://here" }],
    paths: { "/a": { get: { security: [{ bearer: [] }] }, post: { summary: "Open" } } },
    components: {
      securitySchemes: { bearer: { type: "http" } },
      schemas: [
        {
          name: { type: ["string", "null"], maxLength: 9, description: "Its name." },
          other,
          referring: { $ref: "#/x" },
        },
      ],
    },
  });
});

import { errorDocument } from "../http/error-document.ts";
import { describeApi } from "./openapi.ts";

// Prints the documents that describe the gateway, by their path in the repository, as one JSON object.
process.stdout.write(
  JSON.stringify({
    "docs/openapi.json": `${JSON.stringify(describeApi(), null, 2)}\n`,
    "docs/errors.md": errorDocument(),
  }),
);

import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import type { Express } from "express";
import { json, page, type Reply } from "../http/exchange.ts";
import { escapeHtml, htmlPage } from "../http/html.ts";
import { plainPageSecurity, referenceSecurity } from "../http/page-security.ts";
import { errorReferencePath } from "../http/problem.ts";
import { type AddPath, type MountOptions, mountPublic } from "../http/router.ts";
import { mqttAddressOf } from "../routes/mqtt-address.ts";
import { describeTopics } from "./asyncapi.ts";
import { errorReference } from "./error-reference.ts";
import { describeApi } from "./openapi.ts";

const documentPath = "/api/v2/openapi.json";
const topicsPath = "/api/v2/asyncapi.json";

const require = createRequire(import.meta.url);
/** Its module is not imported, since that would load the whole of Swagger UI into this process. */
const swaggerUi = dirname(require.resolve("swagger-ui-dist/package.json"));

/** Files of Swagger UI that the page needs, with their media types. */
const files = {
  "swagger-ui.css": "text/css; charset=utf-8",
  "swagger-ui-bundle.js": "text/javascript; charset=utf-8",
  "favicon-32x32.png": "image/png",
} as const;

const referencePage = `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Devmesh API</title>
<link rel="stylesheet" href="/docs/swagger-ui.css">
<link rel="icon" type="image/png" href="/docs/favicon-32x32.png">
</head>
<body>
<div id="swagger-ui"></div>
<script src="/docs/swagger-ui-bundle.js"></script>
<script src="/docs/start.js"></script>
</body>
</html>
`;

// Without `validatorUrl: null`, Swagger UI sends the document's address to a validator of its makers.
const startScript = `SwaggerUIBundle({
  url: ${JSON.stringify(documentPath)},
  dom_id: "#swagger-ui",
  deepLinking: true,
  validatorUrl: null,
});
`;

interface ReferenceOptions extends Pick<MountOptions, "endpoint" | "crossOrigin"> {
  readonly publicUrl: string | undefined;
  readonly mqttPublicUrl: string | undefined;
}

/**
 * Mounts the OpenAPI and AsyncAPI documents, the reference and the list of error reasons; all are public (api.md,
 * Operations).
 */
export function mountReference(
  app: Express,
  add: AddPath,
  { endpoint, crossOrigin, publicUrl, mqttPublicUrl }: ReferenceOptions,
): void {
  const document = Buffer.from(JSON.stringify(describeApi(publicUrl)));
  const apiHost = publicUrl === undefined ? undefined : new URL(publicUrl).hostname;
  const topics = Buffer.from(JSON.stringify(describeTopics(mqttAddressOf(mqttPublicUrl), apiHost)));
  const errorsPage = htmlPage("Errors of the Devmesh API", errorsTable());
  const mountReply = (path: string, reply: Reply) =>
    mountPublic(add, path, () => reply, { endpoint, crossOrigin });

  app.use(errorReferencePath, plainPageSecurity());
  app.use("/docs", (request, response, next) => {
    if (request.baseUrl + request.path === errorReferencePath) next();
    else referenceSecurity(request, response, next);
  });
  mountReply(documentPath, json(document));
  mountReply(topicsPath, json(topics));
  mountReply("/docs", page(referencePage));
  mountReply("/docs/start.js", {
    status: 200,
    headers: { "Content-Type": "text/javascript; charset=utf-8" },
    body: startScript,
  });
  mountReply(errorReferencePath, page(errorsPage));
  for (const [name, type] of Object.entries(files)) {
    mountReply(`/docs/${name}`, {
      status: 200,
      headers: { "Content-Type": type, "Cache-Control": "public, max-age=3600" },
      body: readFileSync(join(swaggerUi, name)),
    });
  }
}

function errorsTable(): string {
  const rows = errorReference().map(
    ({ reason, status, when }) =>
      `<tr id="${escapeHtml(reason)}"><td><code>${escapeHtml(reason)}</code></td><td>${status}</td><td>${escapeHtml(when)}</td></tr>`,
  );
  return `<h1>Errors</h1>
<p>The member <code>reason</code> of a problem, the HTTP status it comes with, and when.</p>
<table><thead><tr><th>reason</th><th>status</th><th>when</th></tr></thead><tbody>
${rows.join("\n")}
</tbody></table>`;
}

import type { Express } from "express";
import { absolutePath } from "swagger-ui-dist";
import type { createEndpoints } from "./endpoint.ts";
import { errorReference } from "./error-reference.ts";
import { escapeHtml, htmlPage } from "./html.ts";
import { describeApi } from "./openapi.ts";
import { plainPageSecurity, referenceSecurity } from "./page-security.ts";
import { errorReferencePath } from "./problem.ts";
import { json, page } from "./reply.ts";

const documentPath = "/api/v2/openapi.json";
const files = ["swagger-ui.css", "swagger-ui-bundle.js", "favicon-32x32.png"] as const;

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

const startScript = `SwaggerUIBundle({ url: ${JSON.stringify(documentPath)}, dom_id: "#swagger-ui", deepLinking: true });
`;

/**
 * Puts the OpenAPI document, its rendered form and the list of error reasons on an application; all are public
 * (api.md, Operations). `publicUrl` is where clients reach the gateway.
 */
export function mountReference(
  app: Express,
  endpoint: ReturnType<typeof createEndpoints>,
  publicUrl: string | undefined,
): void {
  const document = Buffer.from(JSON.stringify(describeApi(publicUrl)));
  const directory = absolutePath();
  const secureReference = referenceSecurity();
  const errorsPage = htmlPage("Errors of the Devmesh API", errorsTable());

  app.use(errorReferencePath, plainPageSecurity());
  app.use("/docs", (request, response, next) => {
    if (request.baseUrl + request.path === errorReferencePath) next();
    else secureReference(request, response, next);
  });
  app.get(
    documentPath,
    endpoint(documentPath, () => json(document)),
  );
  app.get(
    "/docs",
    endpoint("/docs", () => page(referencePage)),
  );
  app.get(
    "/docs/start.js",
    endpoint("/docs/start.js", () => ({
      status: 200,
      headers: { "Content-Type": "text/javascript; charset=utf-8" },
      body: startScript,
    })),
  );
  app.get(
    errorReferencePath,
    endpoint(errorReferencePath, () => page(errorsPage)),
  );
  for (const name of files) {
    app.get(`/docs/${name}`, (_request, response) =>
      response.sendFile(name, { root: directory, maxAge: "1h" }),
    );
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

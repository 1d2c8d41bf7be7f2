import { gzipSync } from "node:zlib";
import { escapeHtml } from "@devmesh/service-kit/escape-html";
import type { Express } from "express";
import { type EncodedFile, fileReply } from "../http/encoded-file.ts";
import { type Exchange, page, type Reply } from "../http/exchange.ts";
import { htmlPage } from "../http/html.ts";
import { plainPageSecurity } from "../http/page-security.ts";
import { errorReferencePath } from "../http/problem.ts";
import { type AddPath, type MountOptions, mountPublic } from "../http/router.ts";
import { mqttAddressOf } from "../routes/mqtt-address.ts";
import { describeMessages } from "./asyncapi.ts";
import { errorReference } from "./error-reference.ts";
import { describeApi } from "./openapi.ts";

const documentPath = "/api/v2/openapi.json";
const topicsPath = "/api/v2/asyncapi.json";

/** Shown while there is no build of the dashboard, which has the reference. */
const documentsPage = htmlPage(
  "Devmesh API",
  `<h1>Devmesh API</h1>
<p>The reference is part of the dashboard, which is not built here. What it is drawn from:</p>
<ul>
<li><a href="${documentPath}">${documentPath}</a>, the REST API</li>
<li><a href="${topicsPath}">${topicsPath}</a>, the topics of devices and the events of webhooks</li>
<li><a href="${errorReferencePath}">${errorReferencePath}</a>, the errors</li>
</ul>`,
);

interface ReferenceOptions extends Pick<MountOptions, "publicEndpoint" | "crossOrigin"> {
  readonly publicUrl: string | undefined;
  readonly mqttPublicUrl: string | undefined;
}

/**
 * Mounts the OpenAPI and AsyncAPI documents and the list of error reasons; all are public (api.md, Operations).
 */
export function mountReference(
  app: Express,
  add: AddPath,
  { publicEndpoint, crossOrigin, publicUrl, mqttPublicUrl }: ReferenceOptions,
): void {
  const apiHost = publicUrl === undefined ? undefined : new URL(publicUrl).hostname;
  const errorsPage = htmlPage("Errors of the Devmesh API", errorsTable());
  const mountReply = (path: string, reply: (exchange: Exchange) => Reply) =>
    mountPublic(add, path, reply, { publicEndpoint, crossOrigin });

  app.use(errorReferencePath, plainPageSecurity());
  mountReply(
    documentPath,
    documentReply(() => describeApi(publicUrl)),
  );
  mountReply(
    topicsPath,
    documentReply(() => describeMessages(mqttAddressOf(mqttPublicUrl), apiHost)),
  );
  mountReply(errorReferencePath, () => page(errorsPage));
}

/**
 * Answers with a JSON document, compressed where the client accepts that: the longer one has 430 KB. It is made for the
 * first request, since that takes a third of a second of processor time, with which each gateway would start later.
 */
function documentReply(describe: () => object): (exchange: Exchange) => Reply {
  let file: EncodedFile | undefined;
  const make = (): EncodedFile => {
    const identity = Buffer.from(JSON.stringify(describe()));
    return { type: "application/json", identity, encoded: new Map([["gzip", gzipSync(identity)]]) };
  };
  return ({ request }) => {
    file ??= make();
    return fileReply(request, file, "no-store");
  };
}

/** Mounts the page that replaces the reference, after the dashboard. */
export function mountDocumentsPage(
  app: Express,
  add: AddPath,
  options: Pick<MountOptions, "publicEndpoint" | "crossOrigin">,
): void {
  app.use("/docs", plainPageSecurity());
  mountPublic(add, "/docs", () => page(documentsPage), options);
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

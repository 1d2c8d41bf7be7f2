import { secretsInText } from "@devmesh/contracts/model/api-key";
import type { BrowserContext } from "playwright-core";

/** What a page must never do; all empty for a good one. */
export interface PageErrors {
  /** URLs of requests that left the origin. */
  readonly foreignRequests: string[];
  /** URLs that hold a key or a token. */
  readonly secretsInUrls: string[];
  /** What the Content-Security-Policy blocked. */
  readonly policyViolations: string[];
  /** Uncaught errors, and errors on the console. */
  readonly errors: string[];
}

export const noPageErrors: PageErrors = {
  foreignRequests: [],
  secretsInUrls: [],
  policyViolations: [],
  errors: [],
};

/** A key of any kind, or a device's token. */
const secret = new RegExp(secretsInText.source);

/** Chromium's message about a status such as 401, which is no error of the page. */
const refusal = /^Failed to load resource: the server responded with a status of \d+/;

/** Watches all pages of a context. */
export async function watchPageErrors(context: BrowserContext, origin: string): Promise<PageErrors> {
  const seen: PageErrors = { foreignRequests: [], secretsInUrls: [], policyViolations: [], errors: [] };
  const inspect = (url: string) => {
    if (secret.test(url)) seen.secretsInUrls.push(url);
    const own = new URL(url).origin === origin || /^(data|blob|about):/.test(url);
    if (!own) seen.foreignRequests.push(url);
  };
  context.on("request", (request) => inspect(request.url()));
  context.on("page", (page) => {
    page.on("websocket", (socket) => inspect(socket.url().replace(/^ws/, "http")));
    page.on("framenavigated", (frame) => inspect(frame.url()));
  });
  context.on("weberror", (failure) => seen.errors.push(String(failure.error())));
  context.on("console", (message) => {
    if (message.type() === "error" && !refusal.test(message.text())) seen.errors.push(message.text());
  });
  await context.exposeBinding("reportPolicyViolation", (_source, violation: string) => {
    seen.policyViolations.push(violation);
  });
  await context.addInitScript(() => {
    document.addEventListener("securitypolicyviolation", ({ effectiveDirective, blockedURI, sourceFile }) => {
      const violation = `${effectiveDirective} refused ${blockedURI} in ${sourceFile} (${location.pathname})`;
      (window as unknown as { reportPolicyViolation(violation: string): void }).reportPolicyViolation(
        violation,
      );
    });
  });
  return seen;
}

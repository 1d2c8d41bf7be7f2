import type { BrowserContext } from "playwright-core";

/** What a page must never do, as it was seen; each of them empty for a good one. */
export interface Misdeeds {
  /** URLs of requests that left the origin. */
  readonly foreignRequests: string[];
  /** URLs that hold a key or a token. */
  readonly secretsInUrls: string[];
  /** What the Content-Security-Policy kept from happening. */
  readonly policyViolations: string[];
  /** Errors that nobody caught, and what the page complained of on the console. */
  readonly errors: string[];
}

/** What is to be seen of a page. */
export const noMisdeeds: Misdeeds = {
  foreignRequests: [],
  secretsInUrls: [],
  policyViolations: [],
  errors: [],
};

/** A key of any kind, or a device's token. */
const secret = /(mk|dk|ck|pk|dt)_[0-9A-Za-z]{32}/;

/** What Chromium says of an answer such as 401, which is no fault of the page. */
const refusal = /^Failed to load resource: the server responded with a status of \d+/;

/** Watches all pages of a context from now on. */
export async function watchForMisdeeds(context: BrowserContext, origin: string): Promise<Misdeeds> {
  const seen: Misdeeds = { foreignRequests: [], secretsInUrls: [], policyViolations: [], errors: [] };
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
  await context.exposeBinding("tellPolicyViolation", (_source, violation: string) => {
    seen.policyViolations.push(violation);
  });
  await context.addInitScript(() => {
    document.addEventListener("securitypolicyviolation", ({ effectiveDirective, blockedURI, sourceFile }) => {
      const told = `${effectiveDirective} refused ${blockedURI} in ${sourceFile} (${location.pathname})`;
      (window as unknown as { tellPolicyViolation(told: string): void }).tellPolicyViolation(told);
    });
  });
  return seen;
}

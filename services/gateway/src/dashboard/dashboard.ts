import type { Express, Request } from "express";
import { fileReply } from "../http/encoded-file.ts";
import { json, type Reply } from "../http/exchange.ts";
import { RequestRefused } from "../http/gateway-errors.ts";
import { dashboardSecurity } from "../http/page-security.ts";
import type { MountOptions } from "../http/router.ts";
import { type CurrentDashboard, type DashboardBuild, hashedFiles } from "./dashboard-build.ts";
import { isOfThisMachine, keyPlacePath } from "./key-place.ts";

/** Paths that are never a view of the dashboard, so that a mistyped one gets a problem. */
const reserved = /^\/(api|docs|assets|customer|newcustomer|confirm)(\/|$)/;

/** The reference of the API, and the file of the build that it is. */
const reference = { path: /^\/docs\/?$/, file: "/docs.html" } as const;

interface DashboardOptions extends Pick<MountOptions, "publicEndpoint"> {
  readonly current: CurrentDashboard;
  /** The file with a master key, which only browsers on this machine get to know; null to name it to none. */
  readonly keyFile: string | null;
}

/**
 * Mounts the dashboard after all other routes: its files, the reference of the API at `/docs`, and its page for `/` and
 * each other path that a browser navigates to. It is public and holds no secret. Without a build the next handler
 * answers.
 */
export function mountDashboard(app: Express, { current, keyFile, publicEndpoint }: DashboardOptions): void {
  const refuse = publicEndpoint("(dashboard)", () => {
    throw new RequestRefused("method_not_allowed", { headers: { Allow: "GET, HEAD" } });
  });
  app.use((request, response, next) => {
    const build = current();
    if (build === null) return next();
    const reading = request.method === "GET" || request.method === "HEAD";
    const file = build.files.has(fileOf(request)) || request.path === "/" || request.path === keyPlacePath;
    if (!file && !(reading && isView(request))) return next();
    const serve = publicEndpoint("(dashboard)", () => answer(request, build, keyFile));
    dashboardSecurity(request, response, (error) => {
      if (error) return next(error);
      void (reading ? serve : refuse)(request, response);
    });
  });
}

/** Whether a browser navigates there; programs that mistype a path get a problem. */
function isView({ path, headers }: Request): boolean {
  return !reserved.test(path) && headers.accept?.includes("text/html") === true;
}

function fileOf({ path }: Request): string {
  return reference.path.test(path) ? reference.file : path;
}

function answer(request: Request, { page, files }: DashboardBuild, keyFile: string | null): Reply {
  if (request.path === keyPlacePath) {
    const place = JSON.stringify({ file: isOfThisMachine(request) ? keyFile : null });
    return json(Buffer.from(place), { headers: { "Cache-Control": "no-store" } });
  }
  const file = files.get(fileOf(request));
  if (file === undefined || file.type === page.type) return fileReply(request, file ?? page, "no-store");
  const hashed = request.path.startsWith(hashedFiles);
  return fileReply(request, file, hashed ? "public, max-age=31536000, immutable" : "public, max-age=3600");
}

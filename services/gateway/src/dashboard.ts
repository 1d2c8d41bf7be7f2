import { readdirSync, readFileSync } from "node:fs";
import { join, relative, sep } from "node:path";
import type { Express, Request } from "express";
import helmet from "helmet";
import { RequestRefused } from "./gateway-errors.ts";
import type { MountOptions } from "./mount.ts";
import type { Reply } from "./reply.ts";

/** Media types of what a build of the dashboard holds, by the end of the name. */
const mediaTypes: Readonly<Record<string, string>> = {
  html: "text/html; charset=utf-8",
  js: "text/javascript; charset=utf-8",
  css: "text/css; charset=utf-8",
  svg: "image/svg+xml",
  png: "image/png",
  woff2: "font/woff2",
};

/** Encodings that the build may have made beside a file, the smallest first. */
const encodings = [
  ["br", ".br"],
  ["gzip", ".gz"],
] as const;

/** A file of the dashboard, held whole: a build is small. */
interface DashboardFile {
  readonly type: string;
  readonly identity: Buffer;
  readonly encoded: ReadonlyMap<string, Buffer>;
}

/** A build of the dashboard. Only what stood in its folder at the start is served, so no path can lead out of it. */
export interface Dashboard {
  readonly page: DashboardFile;
  /** By path of the URL. */
  readonly files: ReadonlyMap<string, DashboardFile>;
}

/** Reads a build of the dashboard; null when there is none in the folder. */
export function readDashboard(folder: string): Dashboard | null {
  let names: string[];
  try {
    names = readdirSync(folder, { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile())
      .map((entry) => relative(folder, join(entry.parentPath, entry.name)));
  } catch {
    return null;
  }
  const known = new Set(names);
  const files = new Map<string, DashboardFile>();
  for (const name of names) {
    const type = mediaTypes[name.slice(name.lastIndexOf(".") + 1)];
    if (type === undefined) continue;
    const encoded = new Map<string, Buffer>();
    for (const [encoding, ending] of encodings) {
      if (known.has(name + ending)) encoded.set(encoding, readFileSync(join(folder, name + ending)));
    }
    files.set(`/${name.split(sep).join("/")}`, { type, identity: readFileSync(join(folder, name)), encoded });
  }
  const page = files.get("/index.html");
  if (page === undefined) return null;
  files.delete("/index.html");
  return { page, files };
}

/** First levels of paths that are never a view of the dashboard, so that a mistyped one is answered as what it was meant for. */
const reserved = /^\/(api|docs|assets|customer|newcustomer|confirm)(\/|$)/;

const security = helmet({
  contentSecurityPolicy: {
    useDefaults: false,
    directives: {
      "default-src": ["'self'"],
      "script-src": ["'self'"],
      // The component library writes style elements and attributes.
      "style-src": ["'self'", "'unsafe-inline'"],
      "img-src": ["'self'", "data:"],
      "connect-src": ["'self'"],
      "object-src": ["'none'"],
      "frame-ancestors": ["'none'"],
      "base-uri": ["'none'"],
      "form-action": ["'self'"],
    },
  },
  referrerPolicy: { policy: "no-referrer" },
  strictTransportSecurity: false,
});

/**
 * Puts a build of the dashboard on an application, behind all other routes: its files, and its page for `/` and for each
 * path that a browser navigates to and that is nothing else's. Anyone may read it; it holds no secret.
 */
export function mountDashboard(
  app: Express,
  { page, files }: Dashboard,
  endpoint: MountOptions["endpoint"],
): void {
  const serve = endpoint("(dashboard)", ({ request }) => {
    const file = files.get(request.path);
    if (file === undefined) return answer(request, page, "no-store");
    const hashed = request.path.startsWith("/assets/");
    return answer(request, file, hashed ? "public, max-age=31536000, immutable" : "public, max-age=3600");
  });
  const refuse = endpoint("(dashboard)", () => {
    throw new RequestRefused("method_not_allowed", { headers: { Allow: "GET, HEAD" } });
  });
  app.use((request, response, next) => {
    const reading = request.method === "GET" || request.method === "HEAD";
    const file = files.has(request.path) || request.path === "/";
    if (!file && !(reading && isView(request))) return next();
    security(request, response, (error) => {
      if (error) return next(error);
      void (reading ? serve : refuse)(request, response);
    });
  });
}

/** Whether a browser navigates there: programs that mistype a path get a problem, not a page. */
function isView({ path, headers }: Request): boolean {
  return !reserved.test(path) && headers.accept?.includes("text/html") === true;
}

function answer(request: Request, { type, identity, encoded }: DashboardFile, caching: string): Reply {
  const headers = { "Content-Type": type, "Cache-Control": caching, Vary: "Accept-Encoding" };
  for (const [encoding, body] of encoded) {
    if (request.acceptsEncodings(encoding))
      return { status: 200, headers: { ...headers, "Content-Encoding": encoding }, body };
  }
  return { status: 200, headers, body: identity };
}

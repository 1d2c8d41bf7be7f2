import { hash } from "node:crypto";
import type { RequestHandler } from "express";
import helmet from "helmet";
import { pageStyle } from "./html.ts";

/** Security headers of pages. What `directives` does not name, the page may not load. */
function pageSecurity(directives: Readonly<Record<string, string[]>>): RequestHandler {
  return helmet({
    contentSecurityPolicy: {
      useDefaults: false,
      directives: {
        "default-src": ["'none'"],
        "base-uri": ["'none'"],
        "form-action": ["'none'"],
        "frame-ancestors": ["'none'"],
        ...directives,
      },
    },
    referrerPolicy: { policy: "no-referrer" },
    strictTransportSecurity: false,
  });
}

/** For the gateway's own pages: no script, nothing from elsewhere. */
export function plainPageSecurity(): RequestHandler[] {
  return [
    pageSecurity({ "style-src": [`'sha256-${hash("sha256", pageStyle, "base64")}'`] }),
    (_request, response, next) => {
      response.setHeader("X-Robots-Tag", "noindex");
      next();
    },
  ];
}

/** For the dashboard and the API reference: Mantine and openapi-explorer need style elements and attributes. */
export const dashboardSecurity = pageSecurity({
  "default-src": ["'self'"],
  "script-src": ["'self'"],
  "style-src": ["'self'", "'unsafe-inline'"],
  "img-src": ["'self'", "data:"],
  "connect-src": ["'self'"],
  "object-src": ["'none'"],
  "form-action": ["'self'"],
});

import { hash } from "node:crypto";
import type { RequestHandler } from "express";
import helmet from "helmet";
import { pageStyle } from "../reference/html.ts";

/** Headers of the gateway's own pages: no script at all, nothing from elsewhere, no trace of the link in other logs. */
export function plainPageSecurity(): RequestHandler[] {
  return [
    helmet({
      contentSecurityPolicy: {
        useDefaults: false,
        directives: {
          "default-src": ["'none'"],
          "style-src": [`'sha256-${hash("sha256", pageStyle, "base64")}'`],
          "base-uri": ["'none'"],
          "form-action": ["'none'"],
          "frame-ancestors": ["'none'"],
        },
      },
      referrerPolicy: { policy: "no-referrer" },
      strictTransportSecurity: false,
    }),
    (_request, response, next) => {
      response.setHeader("X-Robots-Tag", "noindex");
      next();
    },
  ];
}

/** Headers of the API reference: its scripts come from this server alone, none stands in the page. */
export function referenceSecurity(): RequestHandler {
  return helmet({
    contentSecurityPolicy: {
      useDefaults: false,
      directives: {
        "default-src": ["'none'"],
        "script-src": ["'self'"],
        // Swagger UI writes style attributes.
        "style-src": ["'self'", "'unsafe-inline'"],
        "img-src": ["'self'", "data:"],
        "connect-src": ["'self'"],
        "base-uri": ["'none'"],
        "form-action": ["'none'"],
        "frame-ancestors": ["'none'"],
      },
    },
    referrerPolicy: { policy: "no-referrer" },
    strictTransportSecurity: false,
  });
}

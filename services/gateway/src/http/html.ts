import { escapeHtml } from "@devmesh/service-kit/escape-html";

/** Style of the gateway's own pages; their policy allows it by its digest. */
export const pageStyle = `:root{color-scheme:light dark;font-family:system-ui,sans-serif;line-height:1.5}
body{max-width:46rem;margin:15vh auto 4rem;padding:0 1.25rem}
h1{font-size:1.5rem}
code{font-family:ui-monospace,monospace}
table{border-collapse:collapse}
td,th{border:1px solid #8886;padding:.3rem .6rem;text-align:left;vertical-align:top}
tr:target{outline:2px solid}`;

/** A whole page; `body` is HTML. */
export function htmlPage(title: string, body: string): string {
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="robots" content="noindex">
<meta name="referrer" content="no-referrer">
<title>${escapeHtml(title)}</title>
<style>${pageStyle}</style>
</head>
<body>
${body}
</body>
</html>
`;
}

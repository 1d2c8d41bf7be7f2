import type { RouteDeclaration } from "@devmesh/contracts/rest/route";
import { escapeHtml } from "@devmesh/service-kit/escape-html";
import { type PresentProblem, presentJson } from "../http/endpoint.ts";
import { page } from "../http/exchange.ts";
import { htmlPage } from "../http/html.ts";

/** The page after a registration: the same for each address, so it names the limits that the answer must not show. */
export const invitationPage = htmlPage(
  "Invitation requested",
  `<h1>Invitation requested</h1>
<p>If the address may get an invitation, it arrives within minutes. Look among unwanted mail, too.</p>
<p>An address gets only a few invitations an hour, and all addresses together a limited number. If none arrives, try
again in an hour.</p>`,
);

/** The page of an invitation's link. */
export function confirmationPage(email: string): string {
  return htmlPage(
    "Address confirmed",
    `<h1>Address confirmed</h1>
<p><code>${escapeHtml(email)}</code> is confirmed. Your access token is in the mail that brought you here.</p>`,
  );
}

/** Problems of a route with pages: a page for a browser, JSON for other clients. */
const presentPage: PresentProblem = (exchange, answer) => {
  if (exchange.preferred(["application/problem+json", "text/html"]) !== "text/html") {
    return presentJson(exchange, answer);
  }
  const { status, headers, problem } = answer;
  const html = htmlPage(
    problem.title,
    `<h1>${escapeHtml(problem.title)}</h1>
<p>${escapeHtml(problem.detail)}</p>
<p>Request <code>${escapeHtml(problem.request_id)}</code></p>`,
  );
  const shown = page(html, status);
  return { ...shown, headers: { ...headers, ...shown.headers } };
};

/** Presentation of a route's problems; undefined for JSON only. */
export function presentationOf(route: RouteDeclaration): PresentProblem | undefined {
  return Object.values(route.answers).some(({ other }) => other?.["text/html"] !== undefined)
    ? presentPage
    : undefined;
}

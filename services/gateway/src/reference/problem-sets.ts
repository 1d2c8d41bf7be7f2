import { STATUS_CODES } from "node:http";
import type { Code } from "@devmesh/contracts/contract";
import { key_invalid } from "@devmesh/contracts/keys";
import { api } from "@devmesh/contracts/rest/api";
import { declaredErrors, type RouteDeclaration } from "@devmesh/contracts/rest/route";
import { kitErrors } from "@devmesh/service-kit/errors";
import { gatewayErrors } from "../http/gateway-errors.ts";
import { httpStatus } from "../http/http-status.ts";
import { gatewayReasons } from "./error-reference.ts";

interface ProblemReason {
  readonly reason: string;
  readonly when: string;
  /** Whether the gateway itself or any service may answer it, whatever the operation. */
  readonly general: boolean;
}

/** The reasons with which operations answer one status. */
export interface ProblemSet {
  readonly status: number;
  readonly reasons: readonly ProblemReason[];
  readonly operations: readonly string[];
  /** Name of a set that several operations share; of a reason, or of the status if all its reasons are general. */
  readonly id?: string;
}

/** The problems of all operations: equal sets of one status are one. */
export function problemSets(): ProblemSet[] {
  const sets = new Map<string, ProblemSet & { readonly operations: string[] }>();
  for (const [operation, route] of Object.entries<RouteDeclaration>(api)) {
    for (const [status, reasons] of Map.groupBy(reasonsOf(route), (one) => one.status)) {
      const key = `${status} ${reasons.map(({ reason }) => reason).sort()}`;
      const set = sets.get(key) ?? { status, reasons, operations: [] };
      sets.set(key, set);
      set.operations.push(operation);
    }
  }
  return withIds([...sets.values()]);
}

/** Names the sets that several operations share, those of most operations first. */
function withIds(sets: readonly ProblemSet[]): ProblemSet[] {
  const taken = new Set<string>();
  const byUse = sets.toSorted((one, other) => other.operations.length - one.operations.length);
  return byUse.map((set) => {
    if (set.operations.length === 1) return set;
    const names = set.reasons.map(({ reason }) => inCamels(reason));
    const ofStatus = set.reasons.every(({ general }) => general)
      ? [inCamels(STATUS_CODES[set.status] ?? "")]
      : [];
    const id = [...ofStatus, names.at(-1) ?? "", names.join("Or")].find((name) => !taken.has(name));
    if (id === undefined) throw new TypeError(`two sets of problems are called ${names.join("Or")}`);
    taken.add(id);
    return { ...set, id };
  });
}

function inCamels(words: string): string {
  return words.replaceAll(/(?:^|[_ -])([A-Za-z])/g, (_, initial: string) => initial.toUpperCase());
}

/** What a route can refuse; general reasons first. */
function reasonsOf(route: RouteDeclaration): (ProblemReason & { readonly status: number })[] {
  const { deadline_exceeded, unavailable, internal } = kitErrors;
  const ofGateway = gatewayReasons(route).map((reason) => ({
    reason,
    ...gatewayErrors[reason],
    general: true,
  }));
  const ofServices = (errors: Iterable<readonly [string, { code: Code; when: string }]>, general: boolean) =>
    [...errors].map(([reason, { code, when }]) => ({
      reason,
      status: httpStatus(code, reason),
      when,
      general,
    }));
  const ofAll = { ...(route.auth !== null && { key_invalid }), deadline_exceeded, unavailable, internal };
  return [
    ...ofGateway,
    ...ofServices(Object.entries(ofAll), true),
    ...ofServices(
      [...declaredErrors(route)].filter(([reason]) => !(reason in ofAll)),
      false,
    ),
  ];
}

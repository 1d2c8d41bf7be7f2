import { hash } from "node:crypto";
import { jobs as contract } from "@devmesh/contracts/jobs";
import { secretPattern, ticketPrefix } from "@devmesh/contracts/model/api-key";
import type { Clock } from "@devmesh/service-kit/clock";
import { isReason, ServiceError } from "@devmesh/service-kit/errors";
import { type CallContext, createCallContext } from "@devmesh/service-kit/rpc/context";
import type { CallOutput, Client } from "@devmesh/service-kit/rpc/implementation";
import type { RateLimit } from "../auth/rate-limit.ts";
import { ConcurrencyLimit } from "../http/concurrency-limit.ts";
import type { Reply } from "../http/exchange.ts";
import { BriefCache } from "./brief-cache.ts";
import type { AnswerContent } from "./firmware-content.ts";

/** Downloads at a time by one ticket and in all: each holds 64 KB and its connection. */
const perTicket = 2;
const inAll = 1_000;

/** How long a ticket is open without asking again, in milliseconds: so soon a cancelled update ends its ticket. */
const openMs = 1_000;
/** More are asked for again; each has some 300 bytes. */
const maxOpen = 10_000;

/** Timeouts of calls, in milliseconds. */
const readMs = 5_000;
const reportMs = 1_000;

type OpenTicket = CallOutput<typeof contract, "openTicket">;

export interface DownloadsOptions {
  readonly jobs: Pick<Client<typeof contract>, "openTicket" | "noteDownload">;
  readonly answerContent: AnswerContent;
  /** Counts wrong tickets by address. */
  readonly attempts: RateLimit;
  /** Counts requests by right ones. */
  readonly rate: RateLimit;
  readonly clock: Clock;
}

/** A request by a ticket. */
export interface DownloadRequest {
  readonly ticket: string;
  readonly address: string;
  readonly method: string;
  readonly header: (name: string) => string | undefined;
  readonly call: CallContext;
}

/**
 * Sends firmware to holders of a ticket, and reports to `jobs` how far each is. A wrong ticket costs its address a
 * token; an address without tokens opens none.
 */
export function createDownloads(options: DownloadsOptions) {
  const { jobs, answerContent, attempts, rate, clock } = options;
  const opened = new BriefCache<OpenTicket>({ ttlMs: openMs, maxEntries: maxOpen, clock });
  const underWay = new ConcurrencyLimit({
    perMasterKey: 0,
    perOtherKey: perTicket,
    total: inAll,
    refusal: "too_many_downloads",
  });

  async function readTicket(ticket: string, { trace }: CallContext): Promise<OpenTicket> {
    // Others may wait for it when the client has gone.
    using call = createCallContext({ timeoutMs: readMs, trace, clock });
    return await jobs.openTicket({ ticket }, call);
  }

  async function open({ ticket, address, call }: DownloadRequest): Promise<OpenTicket> {
    const digest = digestOf(ticket);
    if (!opened.has(digest)) attempts.assertNotEmpty(address);
    try {
      if (!isTicket(ticket)) throw unknownTicket();
      return await opened.get(digest, () => readTicket(ticket, call));
    } catch (error) {
      if (hasEnded(error)) attempts.charge(address);
      throw error;
    }
  }

  /** Passes on the newest position, one call at a time; throws once the ticket has ended. */
  function createReport(ticket: string): (bytes: number) => void {
    let newest = 0;
    let isRunning = false;
    let ended: ServiceError | undefined;
    async function report(): Promise<void> {
      isRunning = true;
      for (let reported = 0; reported !== newest; ) {
        reported = newest;
        using call = createCallContext({ timeoutMs: reportMs, clock });
        await jobs.noteDownload({ ticket, bytes: reported }, call).catch((error: ServiceError) => {
          if (hasEnded(error)) ended = error;
        });
      }
      isRunning = false;
    }
    return (bytes) => {
      if (ended !== undefined) throw ended;
      newest = bytes;
      if (!isRunning) void report();
    };
  }

  async function answer(request: DownloadRequest): Promise<Reply> {
    const { ticket, method, header } = request;
    const { execution_id, firmware } = await open(request);
    const headers: Record<string, string> = {};
    rate.take(execution_id, headers);
    const report = createReport(ticket);
    const tenthOf = (bytes: number) => Math.floor((10 * bytes) / firmware.size);
    const reply = answerContent({ method, header }, firmware, {
      via: "ticket",
      onSent(from, to) {
        if (tenthOf(from) < tenthOf(to)) report(to);
      },
    });
    const release = underWay.acquire(execution_id, "device");
    return { ...reply, headers: { ...headers, ...reply.headers }, release };
  }

  /** Whether a ticket was opened so lately that it is used without asking. */
  const isOpen = (ticket: string) => opened.has(digestOf(ticket));

  return { answer, isOpen };
}

function digestOf(ticket: string): string {
  return hash("sha256", ticket, "base64url");
}

function isTicket(text: string): boolean {
  return secretPattern.test(text) && text.startsWith(`${ticketPrefix}_`);
}

function hasEnded(error: unknown): boolean {
  return isReason(error, "ticket_unknown") || isReason(error, "ticket_ended");
}

function unknownTicket(): ServiceError {
  const { code, when } = contract.methods.openTicket.errors.ticket_unknown;
  return new ServiceError({ code, reason: "ticket_unknown", message: when });
}

import { randomUUID } from "node:crypto";
import type { Bus } from "@devmesh/service-kit/bus";
import { startResponder } from "@devmesh/service-kit/connection/responder";
import type { ActiveSubscription } from "@devmesh/service-kit/events/subscription";
import type { Msg } from "@nats-io/nats-core";
import { z } from "zod";
import { authCalloutSubject, devicesAccount } from "./broker-subjects.ts";
import { deviceMetrics } from "./device-metrics.ts";
import { accountSigner, type NkeySigner } from "./nkey.ts";

/** A login that nats-server asks about. Holds a password: never log it whole. */
export interface LoginRequest {
  /** User name as the client sent it; empty when it sent none. */
  readonly user: string;
  readonly password: string;
  /** MQTT client id; the broker invents one for a client that sent none. Empty for a client that is not MQTT. */
  readonly mqttClientId: string;
  readonly remoteAddress: string;
  readonly isMqtt: boolean;
  readonly serverId: string;
  /** Number of the connection on that server. */
  readonly connectionId: number;
}

/** Subjects a connection may use; `deny` wins over `allow`, and an empty `allow` allows nothing. */
export interface SubjectPermissions {
  readonly allow: readonly string[];
  readonly deny: readonly string[];
}

/** What a device may do while its connection lasts. */
export interface DeviceGrant {
  readonly deviceId: string;
  readonly publish: SubjectPermissions;
  readonly subscribe: SubjectPermissions;
  /** The broker closes the connection then. */
  readonly expiresAt: Date;
}

/** The decision on a login. A `deny` reason is logged by the broker and must hold no secret. */
export type LoginDecision = { readonly allow: DeviceGrant } | { readonly deny: string };

/** With what the answers are signed. */
export interface AuthCalloutOptions {
  /** Seed of the account key whose public half the broker knows as `issuer`. */
  readonly issuerSeed: string;
}

const Claims = z.object({
  nats: z.object({
    type: z.literal("authorization_request"),
    server_id: z.object({ id: z.string() }),
    user_nkey: z.string(),
    client_info: z.object({
      host: z.string().default(""),
      id: z.int().default(0),
      type: z.string().default(""),
      mqtt_id: z.string().default(""),
      kind: z.string().default(""),
    }),
    connect_opts: z.object({ user: z.string().default(""), pass: z.string().default("") }),
    client_tls: z.unknown().optional(),
  }),
});
type Claims = z.infer<typeof Claims>;

/**
 * Decides logins for the broker, shared with all replicas; a rejection of `decide` refuses the login. Tokens are signed
 * by node:crypto, fifty times as fast as nkeys.
 */
export function answerAuthCallout(
  bus: Bus,
  { issuerSeed }: AuthCalloutOptions,
  decide: (request: LoginRequest) => Promise<LoginDecision>,
): ActiveSubscription {
  const issuer = accountSigner(issuerSeed);
  const { running, stop } = startResponder(
    bus,
    bus.name,
    new Map([[authCalloutSubject, (msg: Msg) => answer(bus, issuer, decide, msg)]]),
  );
  return {
    async stop() {
      await stop();
      await running.settled();
    },
  };
}

async function answer(
  bus: Bus,
  issuer: NkeySigner,
  decide: (request: LoginRequest) => Promise<LoginDecision>,
  msg: Msg,
): Promise<void> {
  let claims: Claims;
  try {
    claims = readRequest(msg.string());
  } catch (error) {
    // Without the names in the request there is nothing to answer.
    deviceMetrics(bus.metrics).logins.inc({ outcome: "failed" });
    bus.log.warn(
      { reason: error instanceof Error ? error.message : "" },
      "an unreadable login request was dropped",
    );
    return;
  }
  let outcome: "allowed" | "denied" | "failed" = "failed";
  let response: { readonly jwt: string } | { readonly error: string } = {
    error: "the login could not be checked",
  };
  try {
    const decision = await decide(requestOf(claims));
    outcome = "allow" in decision ? "allowed" : "denied";
    response =
      "allow" in decision ? { jwt: userToken(issuer, claims, decision.allow) } : { error: decision.deny };
  } catch (error) {
    bus.log.error({ err: error }, "a login could not be checked");
  }
  deviceMetrics(bus.metrics).logins.inc({ outcome });
  try {
    msg.respond(
      signToken(issuer, {
        sub: claims.nats.user_nkey,
        aud: claims.nats.server_id.id,
        nats: { ...response, type: "authorization_response", version: 2 },
      }),
    );
  } catch (error) {
    bus.log.warn({ err: error }, "a login could not be answered");
  }
}

/**
 * The claims of a request. Its signature is not checked: the key would come from the same message, and the broker's
 * permissions decide who may ask.
 */
function readRequest(token: string): Claims {
  const [, payload, signature, ...more] = token.split(".");
  if (payload === undefined || signature === undefined || more.length > 0) throw new Error("not a token");
  const claims = Claims.safeParse(JSON.parse(Buffer.from(payload, "base64url").toString()));
  if (!claims.success)
    throw new Error(`claims: ${claims.error.issues.map(({ path }) => path.join(".")).join(", ")}`);
  return claims.data;
}

function requestOf({ nats }: Claims): LoginRequest {
  const { client_info: client, connect_opts: options } = nats;
  return {
    user: options.user,
    password: options.pass,
    mqttClientId: client.mqtt_id,
    remoteAddress: client.host,
    isMqtt: client.type === "mqtt",
    serverId: nats.server_id.id,
    connectionId: client.id,
  };
}

function userToken(issuer: NkeySigner, claims: Claims, grant: DeviceGrant): string {
  return signToken(issuer, {
    sub: claims.nats.user_nkey,
    aud: devicesAccount,
    name: grant.deviceId,
    exp: Math.floor(grant.expiresAt.getTime() / 1000),
    nats: {
      pub: permissionClaim(grant.publish),
      sub: permissionClaim(grant.subscribe),
      subs: -1,
      data: -1,
      payload: -1,
      type: "user",
      version: 2,
    },
  });
}

/** An absent `allow` would allow everything, so an empty one denies everything. */
function permissionClaim({ allow, deny }: SubjectPermissions) {
  return allow.length === 0 ? { deny: [">"] } : { allow, ...(deny.length === 0 ? {} : { deny }) };
}

const jwtHeader = Buffer.from(JSON.stringify({ typ: "JWT", alg: "ed25519-nkey" })).toString("base64url");

function signToken(issuer: NkeySigner, claims: Readonly<Record<string, unknown>>): string {
  const issuedAt = Math.floor(Date.now() / 1000);
  const payload = JSON.stringify({ jti: randomUUID(), iat: issuedAt, iss: issuer.publicKey, ...claims });
  const signed = `${jwtHeader}.${Buffer.from(payload).toString("base64url")}`;
  return `${signed}.${issuer.sign(signed).toString("base64url")}`;
}

import { timingSafeEqual } from "node:crypto";
import { maxLoginMs } from "@devmesh/contracts/keys";
import { keyPrefixes, secretPattern } from "@devmesh/contracts/model/api-key";
import { DeviceId } from "@devmesh/contracts/model/device-id";
import type { Clock } from "@devmesh/service-kit/clock";
import { isStoreUnavailable } from "@devmesh/store/store-unavailable";
import { digestSecret } from "../api-keys/secret.ts";
import type { CredentialStore, StoredLogin } from "../credentials/credential-store.ts";
import type { IngestionGate } from "./ingestion-check.ts";
import { createLoginQueue } from "./login-queue.ts";
import type { LoginThrottle } from "./login-throttle.ts";
import { type MqttPermissions, mqttPermissions } from "./mqtt-permissions.ts";

const hourMs = 60 * 60 * 1000;
/** Admissions end up to this much earlier, so that those of one moment do not end in one moment. */
const jitterMs = 2 * hourMs;
/** A client id is recorded anew after this long, so that those in use are not the oldest; in milliseconds. */
const clientRenewalMs = 24 * hourMs;

/** What a client said when it connected. */
export interface MqttLogin {
  readonly userName: string;
  readonly password: string;
  /** As the broker knows it: one it made up itself (a NUID) when the client sent none. */
  readonly clientId: string;
  /** IP address of the client. */
  readonly address: string;
  /** Whether it speaks MQTT to the broker. */
  readonly isMqtt: boolean;
}

/** Why a login was refused; for metrics and logs, the client is told nothing of it. */
type LoginRefusal =
  | "not_mqtt"
  | "throttled"
  | "bad_user_name"
  | "bad_credentials"
  | "foreign_client_id"
  | "too_many_client_ids"
  | "ingestion_not_ready"
  | "store_unavailable"
  | "timed_out";

/** A decided login. */
type LoginDecision =
  | {
      readonly admitted: true;
      readonly deviceId: string;
      readonly permissions: MqttPermissions;
      readonly expiresAt: Date;
    }
  | { readonly admitted: false; readonly refusal: LoginRefusal };

/** Decides a login; rejects only when the store fails otherwise than by being away for now. */
export type DecideMqttLogin = (login: MqttLogin, signal: AbortSignal) => Promise<LoginDecision>;

/** What deciding logins needs. */
export interface MqttLoginDependencies {
  readonly credentials: CredentialStore;
  readonly throttle: LoginThrottle;
  readonly gate: IngestionGate;
  readonly clock: Clock;
  /** From 0 up to 1; for the jitter. */
  readonly random?: () => number;
}

/**
 * Who may connect as a device (api.md, MQTT): user name is the device id, password its token, and the client id one of
 * its own, since MQTT sessions are keyed by client id alone. Each login is checked against the store, so that a revoked
 * token admits nobody, whichever replica revoked it.
 */
export function createMqttLogin(dependencies: MqttLoginDependencies): DecideMqttLogin {
  const { credentials, throttle, gate, clock, random = Math.random } = dependencies;
  const queue = createLoginQueue();

  return async (login, signal) => {
    if (!login.isMqtt) return refuse("not_mqtt");
    const deviceId = parseUserName(login.userName);
    const throttled = !throttle.admits(deviceId, login.address);
    const failed = (refusal: LoginRefusal) => {
      if (throttled) return refuse("throttled");
      throttle.recordFailure(deviceId, login.address);
      return refuse(refusal);
    };
    if (deviceId === null) return failed("bad_user_name");
    if (throttle.isRefused(deviceId)) return refuse("throttled");
    const leave = await queue.enter(throttled);
    if (leave === null) return refuse("throttled");
    try {
      return await decide(login, deviceId, failed, signal);
    } catch (error) {
      // These do not count as failed: the device may try again at once.
      if (signal.aborted) return refuse("timed_out");
      if (isStoreUnavailable(error)) return refuse("store_unavailable");
      throw error;
    } finally {
      leave();
    }
  };

  /** Checks the password first, so that a right one is admitted whatever came before it; it costs one look-up. */
  async function decide(
    login: MqttLogin,
    deviceId: string,
    failed: (refusal: LoginRefusal) => LoginDecision,
    signal: AbortSignal,
  ): Promise<LoginDecision> {
    const stored = await credentials.findLogin(deviceId, login.clientId, signal);
    if (!isToken(login.password, stored)) return failed("bad_credentials");
    const origin = originOfClientId(login.clientId, deviceId);
    if (origin === "foreign") return failed("foreign_client_id");
    // The form of an id that the broker makes up may also be the id of another device.
    if (origin === "generated" && (await credentials.isKnown(login.clientId, signal)))
      return failed("foreign_client_id");
    if (!(await gate.isOpen())) return refuse("ingestion_not_ready");

    const now = clock.now().getTime();
    if (stored.clientSeenAt === null || now - stored.clientSeenAt >= clientRenewalMs) {
      // No failure: it may come again in a second.
      if (stored.clientSeenAt === null && !throttle.admitsNewClientId(deviceId))
        return refuse("too_many_client_ids");
      // Before the admission: what this client leaves in the broker must be found when the device is deleted.
      const { epoch, tokenDigest } = stored;
      const client = {
        deviceId,
        epoch,
        tokenDigest,
        clientId: login.clientId,
        at: now,
        generated: origin === "generated",
      };
      if (!(await credentials.recordClient(client, signal))) return failed("bad_credentials");
    }
    const expiresAt = new Date(now + maxLoginMs - random() * jitterMs);
    return { admitted: true, deviceId, permissions: mqttPermissions(deviceId), expiresAt };
  }
}

/** The device id of a user name; what follows the first `?` is an SDK's own (AWS SDKs append their version). */
function parseUserName(userName: string): string | null {
  const parsed = DeviceId.safeParse(userName.split("?", 1)[0]);
  return parsed.success ? parsed.data : null;
}

/** Compares digests in constant time; a device without access fails like a wrong password. */
function isToken(password: string, stored: StoredLogin | null): stored is StoredLogin {
  if (stored === null || !secretPattern.test(password) || !password.startsWith(`${keyPrefixes.device}_`))
    return false;
  return timingSafeEqual(digestSecret(password), stored.tokenDigest);
}

/** Whose a client id is: the device's own, made up by the broker for a client that sent none, or another's. */
function originOfClientId(clientId: string, deviceId: string): "own" | "generated" | "foreign" {
  if (clientId === deviceId) return "own";
  if (clientId.startsWith(`${deviceId}:`)) {
    return /^[A-Za-z0-9_:-]{1,64}$/.test(clientId.slice(deviceId.length + 1)) ? "own" : "foreign";
  }
  return /^[0-9A-Za-z]{22}$/.test(clientId) ? "generated" : "foreign";
}

function refuse(refusal: LoginRefusal): LoginDecision {
  return { admitted: false, refusal };
}

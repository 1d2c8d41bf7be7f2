import { timingSafeEqual } from "node:crypto";
import { maxLoginMs } from "@devmesh/contracts/keys";
import { keyPrefixes, secretPattern } from "@devmesh/contracts/model/api-key";
import { DeviceId } from "@devmesh/contracts/model/device-id";
import type { loginRefusals } from "@devmesh/contracts/model/diagnostics";
import { originOfClientId } from "@devmesh/contracts/mqtt";
import type { LoginDecision, LoginRequest } from "@devmesh/device-broker/auth-callout";
import type { ReportDiagnosis } from "@devmesh/device-broker/diagnosis-reporter";
import { devicePermissions } from "@devmesh/device-broker/permissions";
import type { Clock } from "@devmesh/service-kit/clock";
import { Semaphore } from "@devmesh/service-kit/semaphore";
import { isStoreUnavailable } from "@devmesh/store/store-unavailable";
import { digestSecret } from "../credentials/secret.ts";
import type { CredentialStore, StoredLogin } from "../store/credential-store.ts";
import type { IngestionCheck } from "./ingestion-check.ts";
import type { LoginThrottle } from "./login-throttle.ts";
import { createRefusedLogins } from "./refused-logins.ts";

/** Logins decided at a time; they share a commit of the store. */
const maxDecisions = 100;
/** Limits of the two queues: the second one holds logins of devices that failed too often. */
const maxWaiting = 10_000;
const maxSuspect = 1_000;
const hourMs = 60 * 60 * 1000;
/** Admissions end up to this much earlier, so that those of one moment end at different times. */
const jitterMs = 2 * hourMs;
/** A client id is recorded again after this time, so that those in use are not the oldest; in milliseconds. */
const clientRenewalMs = 24 * hourMs;

/** What is checked of a login. */
export type MqttLogin = Omit<LoginRequest, "serverId" | "connectionId">;

/** Why a login was refused; for the broker's log and for diagnostics, the client does not see it. */
type LoginRefusal = (typeof loginRefusals)[number];

/** Whether the user name is a device; null: not known. */
type Registered = boolean | null;

/** Answers the broker and reports the refusal. */
type Refuse = (refusal: LoginRefusal, registered: Registered) => LoginDecision;

/** A login that may succeed, and the ways to refuse it. */
interface LoginAttempt {
  readonly login: MqttLogin;
  readonly deviceId: string;
  readonly refuse: Refuse;
  /** Refuses and counts the failure for the throttle. */
  readonly failed: Refuse;
  readonly signal: AbortSignal;
}

/** Decides a login; rejects only when the store fails and is not just unavailable. */
export type DecideMqttLogin = (login: MqttLogin, signal: AbortSignal) => Promise<LoginDecision>;

/** Options of the decision of logins. */
export interface MqttLoginOptions {
  readonly credentials: CredentialStore;
  readonly throttle: LoginThrottle;
  readonly ingestion: IngestionCheck;
  readonly clock: Clock;
  readonly report: ReportDiagnosis;
  /** From 0 up to 1; for the jitter. */
  readonly random?: () => number;
}

/**
 * Who may connect as a device (api.md, MQTT): the user name is the device id, the password its token, and the client id
 * another one, since the broker keys sessions by client id alone. Each login is checked against the store.
 */
export function createMqttLogin(options: MqttLoginOptions): DecideMqttLogin {
  const { credentials, throttle, ingestion, clock, report, random = Math.random } = options;
  const queue = new Semaphore({ permits: maxDecisions, queues: [maxWaiting, maxSuspect] });
  const refused = createRefusedLogins(clock);

  return async (login, signal) => {
    if (!login.isMqtt) return { deny: "not_mqtt" };
    const deviceId = parseUserName(login.user);
    const refuse: Refuse = (reason, registered) => {
      report({
        id: deviceId ?? login.user,
        name: "login_refused",
        reason,
        registered,
        address: login.remoteAddress,
        client_id: login.mqttClientId,
      });
      return { deny: reason };
    };
    const throttled = !throttle.admits(deviceId, login.remoteAddress);
    const failed: Refuse = (refusal, registered) => {
      const decision = refuse(refusal, registered);
      // Only in the broker's log: a right password would be admitted, so diagnostics name what is wrong.
      if (throttled) return { deny: "throttled" };
      throttle.recordFailure(deviceId, login.remoteAddress);
      return decision;
    };
    if (deviceId === null) return failed("bad_user_name", false);
    if (throttle.isRefused(deviceId)) return refuse("throttled", true);
    const repeated = refused.find(deviceId, login.password);
    if (repeated !== null) return failed(repeated, repeated === "wrong_password");
    using permit = await queue.acquire(throttled ? 1 : 0);
    if (permit === null) return refuse("throttled", null);
    try {
      return await decide({ login, deviceId, refuse, failed, signal });
    } catch (error) {
      // Neither counts as a failed login: the device may try again at once.
      if (signal.aborted) return refuse("timed_out", null);
      if (isStoreUnavailable(error)) return refuse("store_unavailable", null);
      throw error;
    }
  };

  /** Checks the password first, so that a right one is admitted whatever failed before it. */
  async function decide({ login, deviceId, refuse, failed, signal }: LoginAttempt): Promise<LoginDecision> {
    const stored = await credentials.findLogin(deviceId, login.mqttClientId, signal);
    if (stored === null || !isToken(login.password, stored)) {
      const registered = stored !== null;
      const refusal = registered ? "wrong_password" : "unknown_device";
      refused.add(deviceId, login.password, refusal);
      return failed(refusal, registered);
    }
    const origin = originOfClientId(login.mqttClientId, deviceId);
    if (origin === "foreign") return failed("wrong_client_id", true);
    // An id of the form that the broker generates may also be the id of another device.
    if (origin === "generated" && (await credentials.isKnown(login.mqttClientId, signal)))
      return failed("wrong_client_id", true);
    if (!(await ingestion.passes())) return refuse("ingestion_not_ready", true);
    if (!throttle.admitsLogin(deviceId, login.mqttClientId)) return refuse("throttled", true);

    const now = clock.now().getTime();
    if (stored.clientSeenAt === null || now - stored.clientSeenAt >= clientRenewalMs) {
      // No failure: it may come again in a second.
      if (stored.clientSeenAt === null && !throttle.admitsNewClientId(deviceId))
        return refuse("too_many_client_ids", true);
      // Before the admission: the deletion of the device must find the session of this client.
      const { epoch, tokenDigest } = stored;
      const client = {
        deviceId,
        epoch,
        tokenDigest,
        clientId: login.mqttClientId,
        at: now,
        generated: origin === "generated",
      };
      if (!(await credentials.recordClient(client, signal))) return failed("wrong_password", true);
    }
    const expiresAt = new Date(now + maxLoginMs - random() * jitterMs);
    return { allow: { deviceId, ...devicePermissions(deviceId), expiresAt } };
  }
}

/** The device id of a user name, without what follows a `?` (AWS SDKs append their version). */
function parseUserName(userName: string): string | null {
  const parsed = DeviceId.safeParse(userName.split("?", 1)[0]);
  return parsed.success ? parsed.data : null;
}

/** Compares in constant time. */
function isToken(password: string, stored: StoredLogin): boolean {
  if (!secretPattern.test(password) || !password.startsWith(`${keyPrefixes.device}_`)) return false;
  return timingSafeEqual(digestSecret(password), stored.tokenDigest);
}

import { deviceEvents } from "@devmesh/contracts/devices";
import { mailQueue } from "@devmesh/contracts/mailer";
import type { mesh } from "@devmesh/contracts/mesh";
import { answerAuthCallout } from "@devmesh/device-broker/auth-callout";
import { loginTimeoutMs } from "@devmesh/device-broker/broker-config";
import { deviceMetrics } from "@devmesh/device-broker/device-metrics";
import { awaitDeviceStore } from "@devmesh/device-broker/device-store-check";
import { createDiagnosisReporter } from "@devmesh/device-broker/diagnosis-reporter";
import { subscribe } from "@devmesh/service-kit/events/subscription";
import { sumOf } from "@devmesh/service-kit/metrics";
import type { ServiceParts, StartOptions } from "@devmesh/service-kit/process/run-service";
import { createProducer } from "@devmesh/service-kit/queue/producer";
import { mapStoreErrors } from "@devmesh/service-kit/rpc/map-store-errors";
import { createIdSource } from "@devmesh/service-kit/sortable-id";
import { traceStore } from "@devmesh/service-kit/tracing/trace-store";
import type { Tracer } from "@devmesh/service-kit/tracing/tracer";
import { isStoreUnavailable } from "@devmesh/store/store-unavailable";
import { openStore, parseStoreUrl } from "@devmesh/store/store-url";
import { createAccountEvents } from "./account-events.ts";
import { createKeyUses } from "./api-keys/key-uses.ts";
import { ensureMasterKey } from "./api-keys/master-key.ts";
import { checkEncryptionKey, createEncryption } from "./credentials/encryption.ts";
import { createMailAllowance } from "./customers/mail-allowance.ts";
import type { KeysEnv } from "./env.ts";
import { keepSweeping } from "./housekeeping.ts";
import { createKeys } from "./keys.ts";
import { createIngestionCheck } from "./mqtt-login/ingestion-check.ts";
import { createLoginThrottle } from "./mqtt-login/login-throttle.ts";
import { createMqttLogin } from "./mqtt-login/mqtt-login.ts";
import { openSqliteKeyStore } from "./store/key-store.sqlite.ts";
import type { KeyStore } from "./store/key-store.ts";

/** How long a login waits until the broker stores what devices publish. */
const deviceStoreTimeoutMs = 5_000;
/** Less than the broker waits for the decision of a login. */
const decisionTimeoutMs = loginTimeoutMs - 1_000;
const readinessTimeoutMs = 1_000;

type KeysDeclaration = typeof mesh.keys;

/** Options of a start. */
export type StartKeysOptions = Pick<
  StartOptions<KeysDeclaration, KeysEnv>,
  "env" | "bus" | "publisher" | "log" | "clock" | "signal"
>;

/** The started service; ready when the store can be read. */
export type StartedKeys = Required<Omit<ServiceParts<KeysDeclaration["serves"]>, "elsewhere">>;

/**
 * Opens the store, checks its encryption key, makes sure that a master key exists, and begins to decide device logins.
 * @throws Error with one clear sentence
 */
export async function startKeys(options: StartKeysOptions): Promise<StartedKeys> {
  const { env, bus, publisher, log, clock, signal } = options;
  const encryption = createEncryption(env.KEY_ENCRYPTION_KEY);
  const newId = createIdSource(clock);
  const store = traceKeyStore(bus.tracer, await openKeyStore(env.STORE_URL, signal), env.STORE_URL);
  try {
    await checkEncryptionKey(store, encryption, signal);
    await ensureMasterKey({
      store,
      encryption,
      clock,
      newId,
      preset: env.MASTER_KEY,
      file: env.MASTER_KEY_FILE,
      signal,
    });
    const uses = createKeyUses(store.apiKeys, clock, log);
    const sessionUses = createKeyUses(store.sessions, clock, log);
    const events = createAccountEvents(publisher, clock);
    const implementation = createKeys({
      store,
      encryption,
      clock,
      newId,
      uses,
      sessionUses,
      revealInLists: env.KEYS_REVEAL === "always",
      events,
      mail: await createProducer(bus, mailQueue),
      takeMailSlot: createMailAllowance({
        store: store.mailSlots,
        clock,
        encryption,
        registry: bus.metrics.registry,
        limits: {
          perAddress: env.MAIL_PER_ADDRESS_HOUR,
          perNetwork: env.MAIL_PER_NETWORK_HOUR,
          total: env.MAIL_PER_HOUR,
        },
      }),
    });
    const ingestion = createIngestionCheck(() => awaitDeviceStore(bus, deviceStoreTimeoutMs));
    // Before the devices reconnect: later, the answer would queue after all their logins.
    const forgetHook = bus.onReconnect(() => {
      ingestion.reset();
      void ingestion.passes();
    });
    void ingestion.passes();
    const throttle = createLoginThrottle(clock, {
      perDevice: env.LOGIN_FAILURES_PER_DEVICE_MINUTE,
      perAddress: env.LOGIN_FAILURES_PER_ADDRESS_MINUTE,
    });
    const decide = createMqttLogin({
      credentials: store.credentials,
      throttle,
      ingestion,
      clock,
      report: createDiagnosisReporter({ clock, publish: publisher.diagnostics }),
    });
    const logins = answerAuthCallout(bus, { issuerSeed: env.AUTH_ISSUER_SEED }, (request) =>
      decide(request, AbortSignal.timeout(decisionTimeoutMs)),
    );
    const throttled = subscribe(
      bus,
      { events: deviceEvents, names: ["throttled"] },
      { throttled: ({ id, refused_ms }) => throttle.refuse(id, refused_ms) },
      { mode: "each" },
    );
    const { logins: decided } = deviceMetrics(bus.metrics);
    const sweeping = keepSweeping({ store, events, clock, log }, signal);
    return {
      implementation: mapStoreErrors(implementation, isStoreUnavailable),
      ready: () => store.ping(AbortSignal.timeout(readinessTimeoutMs)),
      figures: {
        logins: () => sumOf(decided, ({ outcome }) => outcome === "allowed"),
        logins_refused: () => sumOf(decided, ({ outcome }) => outcome !== "allowed"),
      },
      async stop() {
        await Promise.all([logins.stop(), throttled.stop()]);
        forgetHook();
        await sweeping;
        await Promise.all([uses.close(), sessionUses.close()]);
      },
      close: () => store.close(),
    };
  } catch (error) {
    await store.close();
    throw error;
  }
}

function traceKeyStore(tracer: Tracer | undefined, store: KeyStore, storeUrl: string): KeyStore {
  const { kind: system } = parseStoreUrl(storeUrl);
  const traced = <S extends object>(part: S, collection: string) =>
    traceStore(tracer, part, { system, collection });
  return {
    ...traced(store, "keys"),
    apiKeys: traced(store.apiKeys, "api_keys"),
    credentials: traced(store.credentials, "credentials"),
    sessions: traced(store.sessions, "sessions"),
    customers: traced(store.customers, "customers"),
    mailSlots: traced(store.mailSlots, "mail_slots"),
  };
}

function openKeyStore(storeUrl: string, signal: AbortSignal): Promise<KeyStore> {
  const mongodb = async () => (await import("./store/key-store.mongodb.ts")).openMongoKeyStore;
  return openStore(parseStoreUrl(storeUrl), { sqlite: openSqliteKeyStore, mongodb }, signal);
}

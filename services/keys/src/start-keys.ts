import { deviceEvents } from "@devmesh/contracts/devices";
import { mailQueue } from "@devmesh/contracts/mailer";
import type { mesh } from "@devmesh/contracts/mesh";
import { createCallContext } from "@devmesh/service-kit/context";
import { subscribe } from "@devmesh/service-kit/events";
import { mapStoreErrors } from "@devmesh/service-kit/map-store-errors";
import { createProducer } from "@devmesh/service-kit/queue-producer";
import type { StartedService, StartOptions } from "@devmesh/service-kit/run-service";
import { isStoreUnavailable } from "@devmesh/store/store-unavailable";
import { createKeyUses } from "./api-keys/key-uses.ts";
import { ensureMasterKey } from "./api-keys/master-key.ts";
import { createAnnouncer } from "./api-keys/revocation.ts";
import { createAccountNotices } from "./customers/account-events.ts";
import { createMailAllowance } from "./customers/mail-allowance.ts";
import type { KeysEnv } from "./env.ts";
import { keepSweeping } from "./housekeeping.ts";
import { createKeys } from "./keys.ts";
import { answerDeviceLogins } from "./mqtt-login/device-logins.ts";
import { createIngestionGate } from "./mqtt-login/ingestion-check.ts";
import { createLoginThrottle } from "./mqtt-login/login-throttle.ts";
import { createMqttLogin } from "./mqtt-login/mqtt-login.ts";
import { createSealer } from "./store/encryption.ts";
import { checkEncryptionKey } from "./store/encryption-key-check.ts";
import { openKeyStore } from "./store/open-key-store.ts";
import { createIdSource } from "./store/sortable-id.ts";

/** How long a login waits for the bridge, in milliseconds. */
const ingestionTimeoutMs = 5_000;

/** How long the store may take to show that it is there, in milliseconds. */
const readinessTimeoutMs = 1_000;

type Declaration = typeof mesh.keys;

/** What the service is put together from. */
export type KeysParts = Pick<
  StartOptions<Declaration, KeysEnv>,
  "env" | "bus" | "publisher" | "clients" | "log" | "clock" | "signal"
>;

/** The service, put together; ready when the store can be read. */
export type StartedKeys = Required<Omit<StartedService<Declaration["serves"]>, "elsewhere">>;

/**
 * Opens the store, makes sure that it is this encryption key's and that a master key exists, and puts the use cases
 * together. Answers device logins from now on. Throws with one clear sentence when one of it cannot be.
 */
export async function startKeys(parts: KeysParts): Promise<StartedKeys> {
  const { env, bus, publisher, clients, log, clock, signal } = parts;
  const sealer = createSealer(env.KEY_ENCRYPTION_KEY);
  const newId = createIdSource(clock);
  const store = await openKeyStore(env.STORE_URL, signal);
  try {
    await checkEncryptionKey(store, sealer, signal);
    await ensureMasterKey({
      store,
      sealer,
      clock,
      newId,
      preset: env.MASTER_KEY,
      file: env.MASTER_KEY_FILE,
      signal,
    });
    const uses = createKeyUses(store.apiKeys, clock, log);
    const notices = createAccountNotices(publisher, clock);
    const implementation = createKeys({
      store,
      sealer,
      clock,
      newId,
      uses,
      revealInLists: env.KEYS_REVEAL === "always",
      announceRevoked: createAnnouncer(publisher),
      notices,
      mail: await createProducer(bus, mailQueue),
      takeMailSlot: createMailAllowance({
        store: store.mailSlots,
        clock,
        sealer,
        registry: bus.metrics.registry,
        limits: {
          perAddress: env.MAIL_PER_ADDRESS_HOUR,
          perNetwork: env.MAIL_PER_NETWORK_HOUR,
          total: env.MAIL_PER_HOUR,
        },
      }),
    });
    const gate = createIngestionGate(async () => {
      using call = createCallContext({ timeoutMs: ingestionTimeoutMs, signal });
      await clients["rpc-bridge"].awaitIngestion({}, call);
    });
    // Asked before the devices come back: the answer to the first of many logins would queue after all the others.
    const forgetHook = bus.onReconnect(() => {
      gate.close();
      void gate.isOpen();
    });
    void gate.isOpen();
    const throttle = createLoginThrottle(clock, {
      perDevice: env.LOGIN_FAILURES_PER_DEVICE_MINUTE,
      perAddress: env.LOGIN_FAILURES_PER_ADDRESS_MINUTE,
    });
    const logins = answerDeviceLogins(
      bus,
      env.AUTH_ISSUER_SEED,
      createMqttLogin({ credentials: store.credentials, throttle, gate, clock }),
    );
    const throttled = subscribe(
      bus,
      { events: deviceEvents, names: ["throttled"] },
      { throttled: ({ id, refused_ms }) => throttle.refuse(id, refused_ms) },
      { mode: "each" },
    );
    const sweeping = keepSweeping({ store, notices, clock, log }, signal);
    return {
      implementation: mapStoreErrors(implementation, isStoreUnavailable),
      ready: () => store.ping(AbortSignal.timeout(readinessTimeoutMs)),
      async stop() {
        await Promise.all([logins.stop(), throttled.stop()]);
        forgetHook();
        await sweeping;
        await uses.close();
      },
      close: () => store.close(),
    };
  } catch (error) {
    await store.close();
    throw error;
  }
}

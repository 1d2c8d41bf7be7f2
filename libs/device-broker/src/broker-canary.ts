import { type Bus, pause } from "@devmesh/service-kit/bus";
import { withTimeout } from "@devmesh/service-kit/clock";
import { natsConnection } from "@devmesh/service-kit/connection/nats-connection";
import { isMissing, streamManager } from "@devmesh/service-kit/connection/streams";
import { jetstream } from "@nats-io/jetstream";
import { canarySubjects, mqttStream } from "./broker-subjects.ts";

/** Pause between two canaries, in milliseconds. */
const everyMs = 5_000;
const retryMs = 1_000;
/** Longest wait for an acknowledgement and for the stream's info, in milliseconds. */
const deadlineMs = 3_000;
/** A stream with less room than this, in bytes, is full for a canary, too. */
const canaryBytes = 1_024;

/** What {@link watchBrokerStorage} needs. */
export interface BrokerCanaryOptions {
  readonly bus: Bus;
  /** Publishes on the service's own one of `canarySubjects`; resolves when the broker has acknowledged. */
  readonly publish: () => Promise<void>;
  /** Whether there is a connection to publish on. Without one a canary is left out. */
  readonly connected: () => boolean;
  readonly signal: AbortSignal;
}

/** Whether the broker stores what devices publish at QoS 1 and 2. */
export interface BrokerCanary {
  /** Readiness: false while the broker acknowledges nothing, for another reason than that its stream is full. */
  isStoring(): Promise<boolean>;
  /** Readiness: false while the stream has reached `DEVICE_STREAM_MAX_BYTES`. */
  hasRoom(): Promise<boolean>;
  /** Resolves after `signal` has aborted. */
  readonly ended: Promise<void>;
}

type CanaryFinding = "unknown" | "stored" | "full" | "failing";

/**
 * Writes a small message to `$MQTT_msgs` every few seconds. After a write error, nats-server stores nothing more in
 * that stream until it restarts, but answers all else.
 */
export function watchBrokerStorage({ bus, publish, connected, signal }: BrokerCanaryOptions): BrokerCanary {
  let found: CanaryFinding = "unknown";
  let underWay: Promise<void> | null = null;

  async function attempt(): Promise<void> {
    if (!connected()) return;
    try {
      if (!(await withTimeout(deadlineMs, publish())))
        throw new Error(`no acknowledgement within ${deadlineMs / 1_000} s`);
      if (found === "full" || found === "failing")
        bus.log.info("the broker stores what devices publish again");
      found = "stored";
    } catch (error) {
      // A lost connection or the end of the service says nothing about the storage.
      if (signal.aborted || !bus.connected) return;
      const reason = await reasonOf(bus, error);
      if (reason !== found && reason === "full")
        bus.log.error(
          "the broker's stream is full: DEVICE_STREAM_MAX_BYTES is reached, QoS 1 is not acknowledged",
        );
      if (reason !== found && reason === "failing")
        bus.log.error({ err: error }, "the broker does not store what devices publish; its disk may be full");
      found = reason;
    }
  }

  /** Concurrent callers share one attempt. */
  function attemptOnce(): Promise<void> {
    underWay ??= attempt().finally(() => {
      underWay = null;
    });
    return underWay;
  }

  async function run(): Promise<void> {
    while (!signal.aborted) {
      await attemptOnce();
      await pause(bus, found === "stored" ? everyMs : retryMs, signal);
    }
  }

  async function lacks(finding: CanaryFinding): Promise<boolean> {
    if (found !== "stored") await attemptOnce();
    return found !== finding;
  }

  return {
    isStoring: () => lacks("failing"),
    hasRoom: () => lacks("full"),
    ended: run(),
  };
}

/** Publishes the canary of `data`; rejects unless the stream has stored it. */
export async function publishDataCanary(bus: Bus): Promise<void> {
  await jetstream(bus[natsConnection]).publish(canarySubjects.data, "", { timeout: 2 * deadlineMs });
}

async function reasonOf(bus: Bus, failure: unknown): Promise<CanaryFinding> {
  try {
    const manager = await streamManager(bus, deadlineMs);
    const { config, state } = await manager.streams.info(mqttStream);
    // No stream took the canary, and there is one now: it was created in between.
    if (failure instanceof Error && failure.name === "JetStreamNotEnabled") return "unknown";
    return config.max_bytes > 0 && state.bytes + canaryBytes > config.max_bytes ? "full" : "failing";
  } catch (error) {
    // The broker makes its stream at the first MQTT login.
    return isMissing(error) ? "unknown" : "failing";
  }
}

import type { Clock } from "@devmesh/service-kit/clock";
import { setNewest } from "@devmesh/service-kit/set-newest";
import { TokenBuckets } from "@devmesh/service-kit/token-buckets";

/** Buckets of each kind kept in memory. */
const maxBuckets = 10_000;

/** New client ids of a device: a burst of 300, and 60 more each minute. */
const newClientIds = { size: 300, refill: 60, everyMs: 60_000, maxBuckets } as const;

/** Right logins of a device: 60 at once, and 60 more each minute. */
const loginsOfDevice = { size: 60, refill: 60, everyMs: 60_000, maxBuckets } as const;

/**
 * Right logins that each client id has beside those of its device, so that all clients of one return at once after a
 * restart of the broker.
 */
const loginsOfClient = { size: 2, refill: 1, everyMs: 5 * 60_000, maxBuckets } as const;

/** How long logins of a device are refused without a check once it has used up its own, in milliseconds. */
const loginPauseMs = 1_000;

/** Failed logins within a minute before a device, or an address, is throttled. */
export interface LoginLimits {
  readonly perDevice: number;
  /** 0: addresses are not counted, since a proxy hides those of the devices. */
  readonly perAddress: number;
}

/**
 * Limits failed logins (api.md, MQTT), right ones of a device, and those under new client ids, each of which may leave
 * a session in the broker. Failures count for each device and address; throttled attempts do not count.
 */
export type LoginThrottle = ReturnType<typeof createLoginThrottle>;

/** Counts in memory. */
export function createLoginThrottle(clock: Clock, limits: LoginLimits) {
  const perMinute = (size: number) => new TokenBuckets({ size, refill: size, everyMs: 60_000, maxBuckets });
  const devices = perMinute(limits.perDevice);
  const addresses = perMinute(limits.perAddress);
  const logins = new TokenBuckets(loginsOfDevice);
  const clientLogins = new TokenBuckets(loginsOfClient);
  const newcomers = new TokenBuckets(newClientIds);
  /** Once a device's allowance is used up, one attempt a second is admitted. */
  const retries = new TokenBuckets({ size: 1, refill: 1, maxBuckets });
  /** The end of each refusal in monotonic milliseconds. */
  const refused = new Map<string, number>();

  const isCounted = (address: string) => limits.perAddress > 0 && !isLoopback(address);
  const refuse = (deviceId: string, forMs: number) => {
    const until = Math.max(refused.get(deviceId) ?? 0, clock.monotonicMs() + forMs);
    setNewest(refused, deviceId, until, maxBuckets);
  };

  return {
    /** Whether an attempt is not throttled; `deviceId` is null when the user name is none. */
    admits(deviceId: string | null, address: string): boolean {
      const now = clock.monotonicMs();
      if (isCounted(address) && addresses.tokens(address, now) < 1) return false;
      if (deviceId === null) return true;
      const key = deviceKey(deviceId, address);
      return devices.tokens(key, now) >= 1 || retries.tryTake(key, now);
    },
    recordFailure(deviceId: string | null, address: string): void {
      const now = clock.monotonicMs();
      if (deviceId !== null) {
        const key = deviceKey(deviceId, address);
        devices.take(key, now);
        retries.take(key, now);
      }
      if (isCounted(address)) addresses.take(address, now);
    },
    /** Refuses all logins of a device for so many milliseconds, or until an earlier refusal ends. */
    refuse,
    /** Whether logins of the device are refused, also with the right password. */
    isRefused: (deviceId: string): boolean => clock.monotonicMs() < (refused.get(deviceId) ?? 0),
    /** Whether the device may log in once more with its right password; counts it if so. */
    admitsLogin(deviceId: string, clientId: string): boolean {
      const now = clock.monotonicMs();
      if (clientLogins.tryTake(`${deviceId} ${clientId}`, now) || logins.tryTake(deviceId, now)) return true;
      refuse(deviceId, loginPauseMs);
      return false;
    },
    /** Whether the device may use one more new client id; counts it if so. */
    admitsNewClientId: (deviceId: string): boolean => newcomers.tryTake(deviceId, clock.monotonicMs()),
  };
}

function deviceKey(deviceId: string, address: string): string {
  return `${deviceId} ${address}`;
}

function isLoopback(address: string): boolean {
  return address === "::1" || /^(::ffff:)?127\./.test(address);
}

import type { Clock } from "@devmesh/service-kit/clock";

const minuteMs = 60_000;
/** Once a device's allowance is used up, one attempt in this time is not throttled, in milliseconds. */
const retryMs = 1_000;
/** Buckets of each sort kept in memory; beyond it the one not touched for longest goes. */
const maxBuckets = 10_000;

/** New client ids that a device may log in under at once, and how many more each minute. */
const newClientIds = { atOnce: 300, perMinute: 60 } as const;

/** Failed logins within a minute before a device, or an address, is throttled. */
export interface LoginLimits {
  readonly perDevice: number;
  readonly perAddress: number;
}

/**
 * Counts failed logins (api.md, MQTT), and right ones under ever new client ids, each of which may leave a session in
 * the broker. A device is counted for each address apart; attempts that were throttled do not count as failed.
 */
export interface LoginThrottle {
  /** Whether an attempt has its turn with all others; `deviceId` is null when the user name is none. */
  admits(deviceId: string | null, address: string): boolean;
  /** Counts a failed login; `deviceId` is null when the user name is none. */
  recordFailure(deviceId: string | null, address: string): void;
  /**
   * Refuses all logins of a device for so many milliseconds from now on, or for longer if that was asked for before.
   */
  refuse(deviceId: string, forMs: number): void;
  /** Whether logins of the device are refused now, with the right password, too. */
  isRefused(deviceId: string): boolean;
  /** Whether the device may log in under one client id more that it has not used before; counts it if so. */
  admitsNewClientId(deviceId: string): boolean;
}

interface Bucket {
  /** Failures left. */
  left: number;
  /** When `left` was computed, monotonic milliseconds. */
  at: number;
  /** When the last attempt was admitted with nothing left. */
  triedAt: number;
}

/** Counts in the memory of this process. */
export function createLoginThrottle(clock: Clock, limits: LoginLimits): LoginThrottle {
  const devices = new Map<string, Bucket>();
  const addresses = new Map<string, Bucket>();
  const newcomers = new Map<string, Bucket>();
  /** Devices that are refused, with the end of it in monotonic milliseconds. */
  const refused = new Map<string, number>();

  function refill(bucket: Bucket, perMinute: number, atOnce = perMinute): void {
    const now = clock.monotonicMs();
    bucket.left = Math.min(atOnce, bucket.left + ((now - bucket.at) / minuteMs) * perMinute);
    bucket.at = now;
  }

  function take(buckets: Map<string, Bucket>, name: string, perMinute: number, atOnce = perMinute): void {
    const now = clock.monotonicMs();
    const bucket = buckets.get(name) ?? { left: atOnce, at: now, triedAt: now };
    refill(bucket, perMinute, atOnce);
    bucket.left = Math.max(0, bucket.left - 1);
    buckets.delete(name);
    buckets.set(name, bucket);
    if (buckets.size > maxBuckets) buckets.delete(buckets.keys().next().value ?? "");
  }

  return {
    admits(deviceId, address) {
      const ofAddress = addresses.get(address);
      if (ofAddress !== undefined) {
        refill(ofAddress, limits.perAddress);
        if (ofAddress.left < 1) return false;
      }
      if (deviceId === null) return true;
      const bucket = devices.get(deviceKey(deviceId, address));
      if (bucket === undefined) return true;
      refill(bucket, limits.perDevice);
      if (bucket.left >= 1) return true;
      if (clock.monotonicMs() - bucket.triedAt < retryMs) return false;
      bucket.triedAt = clock.monotonicMs();
      return true;
    },
    recordFailure(deviceId, address) {
      if (deviceId !== null) {
        const key = deviceKey(deviceId, address);
        take(devices, key, limits.perDevice);
        const bucket = devices.get(key);
        if (bucket !== undefined) bucket.triedAt = clock.monotonicMs();
      }
      if (!isLoopback(address)) take(addresses, address, limits.perAddress);
    },
    refuse(deviceId, forMs) {
      const until = Math.max(refused.get(deviceId) ?? 0, clock.monotonicMs() + forMs);
      refused.delete(deviceId);
      refused.set(deviceId, until);
      if (refused.size > maxBuckets) refused.delete(refused.keys().next().value ?? "");
    },
    isRefused(deviceId) {
      return clock.monotonicMs() < (refused.get(deviceId) ?? 0);
    },
    admitsNewClientId(deviceId) {
      const { perMinute, atOnce } = newClientIds;
      const bucket = newcomers.get(deviceId);
      if (bucket !== undefined) {
        refill(bucket, perMinute, atOnce);
        if (bucket.left < 1) return false;
      }
      take(newcomers, deviceId, perMinute, atOnce);
      return true;
    },
  };
}

function deviceKey(deviceId: string, address: string): string {
  return `${deviceId} ${address}`;
}

function isLoopback(address: string): boolean {
  return address === "::1" || /^(::ffff:)?127\./.test(address);
}

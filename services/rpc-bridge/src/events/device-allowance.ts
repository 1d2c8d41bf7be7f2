/** What one device may have the bridge do, so that a flood of one holds up no other. */
export interface DeviceAllowance {
  /**
   * Whether the device may have one message more handled that it sent at `sentAt`, Unix milliseconds; counts it if
   * so.
   */
  take(deviceId: string, sentAt: number): boolean;
}

interface Bucket {
  left: number;
  /** When `left` was computed, on the scale of the messages' own times. */
  at: number;
}

/** Devices that are remembered; beyond it the one not heard of for longest has its whole allowance again. */
const maxBuckets = 10_000;

/**
 * A token bucket for each device. It is filled by the times at which messages were sent, not by when they are
 * handled: what waited in the broker while the mesh was away is judged as if it had been there.
 */
export function createDeviceAllowance(perSecond: number, burst: number): DeviceAllowance {
  const buckets = new Map<string, Bucket>();
  return {
    take(deviceId, sentAt) {
      const bucket = buckets.get(deviceId) ?? { left: burst, at: sentAt };
      const passedMs = Math.max(0, sentAt - bucket.at);
      bucket.left = Math.min(burst, bucket.left + (passedMs / 1_000) * perSecond);
      bucket.at = Math.max(bucket.at, sentAt);
      buckets.delete(deviceId);
      buckets.set(deviceId, bucket);
      const [oldest] = buckets.keys();
      if (buckets.size > maxBuckets && oldest !== undefined) buckets.delete(oldest);
      if (bucket.left < 1) return false;
      bucket.left--;
      return true;
    },
  };
}

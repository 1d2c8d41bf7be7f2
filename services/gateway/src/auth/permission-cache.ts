import type { NamedQuery } from "@devmesh/contracts/model/acl";
import type { Clock } from "@devmesh/service-kit/clock";
import { setNewest } from "@devmesh/service-kit/set-newest";

/** Answers of one device's ACL by action: null for a permitted function, or the query. */
type Permissions = Map<string, { readonly query: NamedQuery | null; readonly untilMs: number }>;

export interface PermissionCacheOptions {
  readonly maxDevices: number;
  readonly ttlMs: number;
  readonly clock: Clock;
}

/**
 * Answers of `devices.authorize` until their TTL ends or their device changes; the least recently used device is
 * evicted first. Refusals are not cached.
 */
export class PermissionCache {
  readonly #options: PermissionCacheOptions;
  readonly #devices = new Map<string, Permissions>();

  constructor(options: PermissionCacheOptions) {
    this.#options = options;
  }

  /** The cached answer for an action of the device, or that of `authorize`. */
  async get(
    deviceId: string,
    action: string,
    authorize: () => Promise<{ readonly query: NamedQuery | null }>,
  ): Promise<NamedQuery | null> {
    const { clock, ttlMs } = this.#options;
    const permissions = this.#permissionsOf(deviceId);
    const known = permissions.get(action);
    if (known !== undefined && known.untilMs > clock.monotonicMs()) return known.query;
    permissions.delete(action);
    const untilMs = clock.monotonicMs() + ttlMs;
    const { query } = await authorize();
    // Has no effect where `forget` has dropped this map meanwhile.
    permissions.set(action, { query, untilMs });
    return query;
  }

  /** Drops the answers of a device, and those on their way: its ACL may have changed. */
  forget(deviceId: string): void {
    this.#devices.delete(deviceId);
  }

  #permissionsOf(deviceId: string): Permissions {
    const permissions: Permissions = this.#devices.get(deviceId) ?? new Map();
    setNewest(this.#devices, deviceId, permissions, this.#options.maxDevices);
    return permissions;
  }
}

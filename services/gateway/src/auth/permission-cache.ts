import type { NamedQuery } from "@devmesh/contracts/model/acl";
import type { Clock } from "@devmesh/service-kit/clock";

/** What a permission cache is made from. */
export interface PermissionCacheOptions {
  readonly maxDevices: number;
  readonly believedForMs: number;
  readonly clock: Clock;
}

/** What a device's ACL permitted, by action. */
type Permissions<T> = Map<string, { readonly value: T; readonly untilMs: number }>;

/** Permitted functions (null) and queries, as `devices.authorize` answers them. */
export type AclPermissions = PermissionCache<NamedQuery | null>;

/**
 * Answers of `devices.authorize` for a few seconds, or until their device changes; the device asked about longest ago
 * is forgotten first. Refusals are not kept.
 */
export class PermissionCache<T> {
  readonly #options: PermissionCacheOptions;
  readonly #devices = new Map<string, Permissions<T>>();

  constructor(options: PermissionCacheOptions) {
    this.#options = options;
  }

  /** The answer for that action of the device, asked for when none is remembered. */
  async get(deviceId: string, action: string, ask: () => Promise<T>): Promise<T> {
    const { clock, believedForMs } = this.#options;
    const permissions = this.#permissionsOf(deviceId);
    const known = permissions.get(action);
    if (known !== undefined && known.untilMs > clock.monotonicMs()) return known.value;
    permissions.delete(action);
    const askedAtMs = clock.monotonicMs();
    const value = await ask();
    // Where the device was forgotten meanwhile, nobody finds these permissions any more.
    permissions.set(action, { value, untilMs: askedAtMs + believedForMs });
    return value;
  }

  /** Forgets what the device's ACL said, also what it is being asked for just now: it may have changed. */
  forget(deviceId: string): void {
    this.#devices.delete(deviceId);
  }

  #permissionsOf(deviceId: string): Permissions<T> {
    const permissions: Permissions<T> = this.#devices.get(deviceId) ?? new Map();
    this.#devices.delete(deviceId);
    this.#devices.set(deviceId, permissions);
    if (this.#devices.size > this.#options.maxDevices) {
      const oldest = this.#devices.keys().next();
      if (!oldest.done) this.#devices.delete(oldest.value);
    }
    return permissions;
  }
}

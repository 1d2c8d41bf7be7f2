/** The known connections of devices. */
export interface Presence {
  /** Whether the device has at least one open MQTT connection. */
  isOnline(id: string): boolean;
  /** Unix ms at which it was last known to be connected; null when this process knows none. */
  lastSeen(id: string): number | null;
}

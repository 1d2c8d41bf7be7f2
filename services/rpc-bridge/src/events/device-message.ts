/** A message that a device published below `ID/shadow/` or `ID/event/`. */
export interface DeviceMessage {
  readonly deviceId: string;
  readonly payload: Uint8Array;
  /** When the broker took it; of a message at QoS 0, when the bridge heard it. */
  readonly timestamp: Date;
  /** It has been delivered before and not been acknowledged: what it asks may have been done. Never at QoS 0. */
  readonly redelivered: boolean;
  /** The same at each delivery of one message; none at QoS 0, where there is but one. */
  readonly deliveryId?: string;
}

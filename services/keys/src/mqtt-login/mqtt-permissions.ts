/** Subjects that are allowed, except those denied; what stands in neither is denied. */
interface SubjectRules {
  readonly allow: readonly string[];
  readonly deny: readonly string[];
}

/** What a device may do in account DEVICES, in NATS subjects. */
export interface MqttPermissions {
  readonly publish: SubjectRules;
  readonly subscribe: SubjectRules;
}

/**
 * The topics of one device (api.md, MQTT): everything else is denied. QoS 1 and 2, retained messages and kept
 * sessions need no right to the broker's own `$MQTT` subjects. `deviceId` must have passed its pattern: it becomes
 * part of subjects.
 */
export function mqttPermissions(deviceId: string): MqttPermissions {
  return {
    publish: {
      allow: [
        // `<src>/rpc` and `ID/r/rpc`, the two forms of a reply.
        `${deviceId}.r.>`,
        `${deviceId}.shadow.update`,
        `${deviceId}.shadow.get`,
        `${deviceId}.event.>`,
        `db.${deviceId}.>`,
      ],
      deny: [],
    },
    subscribe: {
      // `ID/#` is two subscriptions to the broker: `ID` and `ID.>`.
      allow: [deviceId, `${deviceId}.>`],
      // Mongoose OS firmware subscribes `ID/rpc/#` beside `ID/rpc` and would get each call twice.
      deny: [`${deviceId}.rpc.>`],
    },
  };
}

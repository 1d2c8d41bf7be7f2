import type { DeviceGrant } from "@devmesh/device-broker/auth-callout";

/**
 * The topics of one device as NATS subjects (api.md, MQTT). QoS 1 and 2, retained messages and persistent sessions need
 * no permission for the broker's own `$MQTT` subjects. `deviceId` must have passed its pattern.
 */
export function mqttPermissions(deviceId: string): Pick<DeviceGrant, "publish" | "subscribe"> {
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

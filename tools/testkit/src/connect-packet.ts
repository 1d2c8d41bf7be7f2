import { generate } from "mqtt-packet";

/** The CONNECT packet of a clean session. */
export function connectPacket(username: string, password: string, clientId: string): Buffer {
  return generate({
    cmd: "connect",
    protocolId: "MQTT",
    protocolVersion: 4,
    clean: true,
    keepalive: 60,
    clientId,
    username,
    password: Buffer.from(password),
  });
}

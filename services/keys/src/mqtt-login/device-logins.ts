import { answerAuthCallout } from "@devmesh/device-broker/auth-callout";
import { loginTimeoutMs } from "@devmesh/device-broker/broker-config";
import type { Bus } from "@devmesh/service-kit/bus";
import type { ActiveSubscription } from "@devmesh/service-kit/events";
import type { DecideMqttLogin } from "./mqtt-login.ts";

/** How long a decision may take, in milliseconds: less than the broker waits for it. */
const decisionTimeoutMs = loginTimeoutMs - 1_000;

/** Answers the broker's question about each MQTT login. */
export function answerDeviceLogins(
  bus: Bus,
  issuerSeed: string,
  decide: DecideMqttLogin,
): ActiveSubscription {
  return answerAuthCallout(bus, { issuerSeed }, async (request) => {
    const decision = await decide(
      {
        userName: request.user,
        password: request.password,
        clientId: request.mqttClientId,
        address: request.remoteAddress,
        isMqtt: request.isMqtt,
      },
      AbortSignal.timeout(decisionTimeoutMs),
    );
    if (!decision.admitted) return { deny: decision.refusal };
    const { deviceId, permissions, expiresAt } = decision;
    return { allow: { deviceId, ...permissions, expiresAt } };
  });
}

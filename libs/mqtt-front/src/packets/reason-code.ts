/** Reason codes of MQTT 5 that this service sends or checks. Codes of 0x80 and above are failures. */
export const reasonCodes = {
  success: 0x00,
  disconnectWithWill: 0x04,
  noMatchingSubscribers: 0x10,
  noSubscriptionExisted: 0x11,
  unspecifiedError: 0x80,
  malformedPacket: 0x81,
  protocolError: 0x82,
  unsupportedProtocolVersion: 0x84,
  clientIdNotValid: 0x85,
  badUserNameOrPassword: 0x86,
  notAuthorized: 0x87,
  serverUnavailable: 0x88,
  serverBusy: 0x89,
  badAuthenticationMethod: 0x8c,
  keepAliveTimeout: 0x8d,
  sessionTakenOver: 0x8e,
  topicFilterInvalid: 0x8f,
  topicNameInvalid: 0x90,
  packetIdNotFound: 0x92,
  receiveMaximumExceeded: 0x93,
  topicAliasInvalid: 0x94,
  packetTooLarge: 0x95,
  quotaExceeded: 0x97,
  administrativeAction: 0x98,
  serverShuttingDown: 0x8b,
  sharedSubscriptionsNotSupported: 0x9e,
} as const;

/** One of {@link reasonCodes}. */
export type ReasonCode = (typeof reasonCodes)[keyof typeof reasonCodes];

/** From this code on, a reason code is a failure. */
export const firstFailure = 0x80;

/** In a SUBACK of MQTT 3.1.1: the subscription is refused. */
export const subscriptionFailure = 0x80;

/** Return codes of a CONNACK in MQTT 3.1 and 3.1.1. */
const returnCodes: Readonly<Partial<Record<ReasonCode, number>>> = {
  [reasonCodes.success]: 0,
  [reasonCodes.unsupportedProtocolVersion]: 1,
  [reasonCodes.clientIdNotValid]: 2,
  [reasonCodes.serverUnavailable]: 3,
  [reasonCodes.serverBusy]: 3,
  [reasonCodes.serverShuttingDown]: 3,
  [reasonCodes.badUserNameOrPassword]: 4,
};

/** The return code by which MQTT 3.1 and 3.1.1 say it; 5, not authorized, where they have no other. */
export function returnCodeOf(code: ReasonCode): number {
  return returnCodes[code] ?? 5;
}

/** What a device's id consists of, in all peers. */
export const deviceIdPattern = /^[A-Za-z0-9._-]{1,64}$/;

/** Subjects of `nats-service.ts`. */
export const subjects = { readDevice: "peer.devices.read", verifyKey: "peer.keys.verify" };

/** Member of a `Bus` that holds its NATS connection. Services cannot name it: of them, only this package may. */
export const natsConnection = Symbol("natsConnection");

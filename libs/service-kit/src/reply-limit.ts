/** Largest reply that is sent, in bytes (ADR 19); the broker's `max_payload` is twice that. */
export const MAX_REPLY_BYTES = 512 * 1024;

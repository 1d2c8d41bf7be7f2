/**
 * How this service's collections are opened: bytes come as the driver's own `Binary` otherwise, which is no
 * `Uint8Array`. They go in as they are.
 */
export const bytesAsBuffers = { promoteBuffers: true } as const;

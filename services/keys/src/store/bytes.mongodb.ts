/** Options of this service's collections: without them bytes are read as `Binary`, which is no `Uint8Array`. */
export const bytesAsBuffers = { promoteBuffers: true } as const;

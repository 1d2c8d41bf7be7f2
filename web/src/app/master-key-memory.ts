/** How long the page remembers a master key that the user entered, in milliseconds. */
export const rememberedMs = 10 * 60_000;

/** The master key that the user entered last, in memory alone: no storage and no other tab gets it. */
export interface MasterKeyMemory {
  /** Null before the first, and ten minutes after the last. */
  get(): string | null;
  set(key: string): void;
  forget(): void;
}

/** Remembers a key for ten minutes. */
export function createMasterKeyMemory(): MasterKeyMemory {
  let held: { readonly key: string; readonly untilMs: number } | null = null;
  let timer: ReturnType<typeof setTimeout> | undefined;
  const forget = () => {
    clearTimeout(timer);
    held = null;
  };
  return {
    get() {
      // A computer that slept does not run the timer in time.
      if (held !== null && held.untilMs <= Date.now()) forget();
      return held?.key ?? null;
    },
    set(key) {
      forget();
      held = { key, untilMs: Date.now() + rememberedMs };
      timer = setTimeout(forget, rememberedMs);
    },
    forget,
  };
}

/** No device is admitted before the broker stores what devices publish (ADR 11). */
export type IngestionCheck = ReturnType<typeof createIngestionCheck>;

/** Checks by `ask`, which resolves when the broker is ready; concurrent logins share one question. */
export function createIngestionCheck(ask: () => Promise<unknown>) {
  let asking: Promise<boolean> | null = null;
  return {
    /** Whether the broker does; asks until the answer is yes, which is cached. */
    passes(): Promise<boolean> {
      if (asking === null) {
        const question = ask().then(
          () => true,
          () => {
            if (asking === question) asking = null;
            return false;
          },
        );
        asking = question;
      }
      return asking;
    },
    /** Asks again at the next login: the broker may be another one, or a new one. */
    reset(): void {
      asking = null;
    },
  };
}

/** Keeps devices out until the broker keeps what they publish (architecture, Data). */
export interface IngestionGate {
  /** Whether it does; asks until it was once so. */
  isOpen(): Promise<boolean>;
  /** Asks again at the next login: the broker may be another one, or a new one. */
  close(): void;
}

/**
 * Asks by `ask`, which resolves when the broker is ready and rejects while it is not; logins at the same time share
 * one question.
 */
export function createIngestionGate(ask: () => Promise<unknown>): IngestionGate {
  let asking: Promise<boolean> | null = null;
  return {
    isOpen() {
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
    close() {
      asking = null;
    },
  };
}

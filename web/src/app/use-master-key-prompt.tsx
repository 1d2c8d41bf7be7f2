import { type ReactNode, Suspense, useCallback, useRef, useState } from "react";
import { NoMasterKey } from "../api/api-problem.ts";
import { lazyView } from "../components/lazy-view.ts";
import type { MasterKeyMemory } from "./master-key-memory.ts";

const MasterKeyPrompt = lazyView(async () => (await import("./master-key-prompt.tsx")).MasterKeyPrompt);

/** Asks the user for a master key, unless the memory has one. All that ask at the same time share one dialog. */
export function useMasterKeyPrompt(memory: MasterKeyMemory): {
  /** Rejects with {@link NoMasterKey} if the user cancels. */
  readonly askMasterKey: () => Promise<string>;
  /** The dialog while it is open. */
  readonly prompt: ReactNode;
} {
  const asked = useRef<PromiseWithResolvers<string>>(null);
  const [open, setOpen] = useState(false);
  const askMasterKey = useCallback(async () => {
    const key = memory.get();
    if (key !== null) return key;
    asked.current ??= Promise.withResolvers();
    setOpen(true);
    return await asked.current.promise;
  }, [memory]);
  const answer = (key: string | null) => {
    if (key === null) asked.current?.reject(new NoMasterKey());
    else {
      memory.set(key);
      asked.current?.resolve(key);
    }
    asked.current = null;
    setOpen(false);
  };
  return {
    askMasterKey,
    prompt: open && (
      <Suspense>
        <MasterKeyPrompt onAnswer={answer} />
      </Suspense>
    ),
  };
}

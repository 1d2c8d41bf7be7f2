import type { Sealer } from "./encryption.ts";
import type { KeyStore } from "./key-store.ts";

const name = "encryption_key_check";

/**
 * Makes sure that the store was sealed with this encryption key: it holds a value sealed at its first start.
 * @throws Error with one clear sentence when it was another key.
 */
export async function checkEncryptionKey(
  store: KeyStore,
  sealer: Sealer,
  signal: AbortSignal,
): Promise<void> {
  const stored = await store.putSettingIfAbsent(name, sealer.seal("devmesh", name), signal);
  try {
    sealer.open(stored, name);
  } catch (cause) {
    throw new Error(
      "KEY_ENCRYPTION_KEY is not the key that this store was sealed with: give the former one, its secrets cannot be read otherwise",
      { cause },
    );
  }
}

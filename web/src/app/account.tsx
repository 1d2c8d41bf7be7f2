import { ChevronsUpDown, KeyRound } from "lucide-react";
import { Suspense, useEffect, useState } from "react";
import { useApi } from "../api/api-context.tsx";
import { queryKeys } from "../api/query-keys.ts";
import { useReading } from "../api/use-reading.ts";
import { lazyView } from "../components/lazy-view.ts";
import styles from "./shell.module.css";

const loadMenu = async () => (await import("./account-menu.tsx")).AccountMenu;
const AccountMenu = lazyView(loadMenu);

/** Time after which the menu is loaded anyway, in milliseconds: a sign-out must not need the server. */
const menuDelayMs = 10_000;

/** The key of the session; its menu is loaded when it is first opened. */
export function Account() {
  const [wanted, setWanted] = useState(false);
  const name = useKeyName();
  useEffect(() => {
    const timer = setTimeout(() => void loadMenu().catch(() => {}), menuDelayMs);
    return () => clearTimeout(timer);
  }, []);
  const button = (
    <button
      type="button"
      className={`${styles.item} ${styles.account}`}
      aria-label={`${name}: menu`}
      onClick={() => setWanted(true)}
    >
      <KeyRound size={16} aria-hidden="true" />
      <span className={styles.label}>{name}</span>
      <ChevronsUpDown size={14} className={styles.more} aria-hidden="true" />
    </button>
  );
  if (!wanted) return button;
  return (
    <Suspense fallback={button}>
      <AccountMenu>{button}</AccountMenu>
    </Suspense>
  );
}

/** Name of the master key that began the session. */
function useKeyName(): string {
  const api = useApi();
  const { data } = useReading({
    queryKey: queryKeys.keys,
    queryFn: ({ signal }) => api.call("listKeys", { signal }),
  });
  return data?.find(({ id }) => id === api.session?.master_key_id)?.name ?? "Master key";
}

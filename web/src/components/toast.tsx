import { Button } from "@mantine/core";
import { CircleAlert, CircleCheck, X } from "lucide-react";
import { useEffect, useSyncExternalStore } from "react";
import { IconButton } from "./icon-button.tsx";
import styles from "./toast.module.css";

/** Time for which a result is shown, in milliseconds; errors stay. */
const shownMs = 5_000;

/** Most toasts at a time; an older one goes. */
const mostToasts = 3;

/** The result of an action, and the way back or on. */
interface Toast {
  readonly title: string;
  readonly text?: string;
  readonly failed?: boolean;
  readonly action?: { readonly label: string; readonly run: () => void };
}

type ShownToast = Toast & { readonly key: number };

let toasts: readonly ShownToast[] = [];
let lastKey = 0;
const listeners = new Set<() => void>();

function update(changed: readonly ShownToast[]): void {
  toasts = changed;
  for (const listener of listeners) listener();
}

/** Shows a toast. */
export function showToast(toast: Toast): void {
  lastKey += 1;
  update([...toasts, { ...toast, key: lastKey }].slice(-mostToasts));
}

function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

/** The place of all toasts, once on the page. */
export function Toasts() {
  const shown = useSyncExternalStore(subscribe, () => toasts);
  return (
    <div className={styles.toasts} role="status" aria-live="polite">
      {shown.map((toast) => (
        <ToastCard key={toast.key} toast={toast} />
      ))}
    </div>
  );
}

function ToastCard({ toast }: { readonly toast: ShownToast }) {
  const { key, title, text, failed = false, action } = toast;
  const close = () => update(toasts.filter((each) => each.key !== key));
  useEffect(() => {
    if (failed) return;
    const timer = setTimeout(() => update(toasts.filter((each) => each.key !== key)), shownMs);
    return () => clearTimeout(timer);
  }, [key, failed]);
  const Icon = failed ? CircleAlert : CircleCheck;
  return (
    <div className={styles.toast}>
      <Icon size={16} className={styles.icon} data-failed={failed || undefined} aria-hidden="true" />
      <div className={styles.text}>
        <strong>{title}</strong>
        {text !== undefined && <span>{text}</span>}
      </div>
      {action !== undefined && (
        <Button
          size="xs"
          variant="default"
          onClick={() => {
            action.run();
            close();
          }}
        >
          {action.label}
        </Button>
      )}
      <IconButton label="Dismiss" size="sm" onClick={close}>
        <X size={14} />
      </IconButton>
    </div>
  );
}

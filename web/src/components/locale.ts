import { useSyncExternalStore } from "react";

/** Name of the choice in the storage of the browser. */
const storageKey = "devmesh.locale";

/** Locales that the user can choose for numbers and dates; empty for that of the browser. */
export const locales = ["", "en-US", "en-GB", "de-DE", "de-CH", "fr-FR", "es-ES", "sv-SE"] as const;

const listeners = new Set<() => void>();
let chosen: string | null = null;
const formats = new Map<string, Intl.NumberFormat | Intl.DateTimeFormat>();

/** The locale of numbers and dates, such as "de-DE"; the words of the page are English. */
export function currentLocale(): string {
  chosen ??= globalThis.localStorage?.getItem(storageKey) ?? "";
  return chosen || navigator.language;
}

/** Changes the locale in this browser; empty for that of the browser. */
export function chooseLocale(locale: string): void {
  chosen = locale;
  if (locale === "") localStorage.removeItem(storageKey);
  else localStorage.setItem(storageKey, locale);
  for (const listener of listeners) listener();
}

/** The choice of the user, empty for none, and a new render after each change. */
export function useChosenLocale(): string {
  return useSyncExternalStore(
    (listener) => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    () => {
      currentLocale();
      return chosen ?? "";
    },
  );
}

/** A number format of the current locale; `options` is a constant. */
export function numberFormat(options: Intl.NumberFormatOptions): Intl.NumberFormat {
  return cached(JSON.stringify(options), (locale) => new Intl.NumberFormat(locale, options));
}

/** A date format of the current locale; `options` is a constant. */
export function dateFormat(options: Intl.DateTimeFormatOptions): Intl.DateTimeFormat {
  return cached(JSON.stringify(options), (locale) => new Intl.DateTimeFormat(locale, options));
}

/** To make a format takes a hundred times as long as to use it. */
function cached<T extends Intl.NumberFormat | Intl.DateTimeFormat>(
  name: string,
  make: (locale: string) => T,
): T {
  const locale = currentLocale();
  const key = `${locale} ${name}`;
  const made = (formats.get(key) as T | undefined) ?? make(locale);
  formats.set(key, made);
  return made;
}

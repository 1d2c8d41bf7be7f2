import { useCallback, useMemo } from "react";
import { useSearchParams } from "wouter";

/** State of a view in the query of the page's address: a link leads to it. */
export type Address<T> = readonly [
  values: T,
  change: (values: Partial<T>, how?: { readonly push: boolean }) => void,
];

/**
 * Keeps values in the query of the page's address; a value equal to its default, or empty, is left out. `defaults` is
 * a constant; with `push` a change becomes an entry of the browser's history.
 */
export function useAddress<T extends Readonly<Record<string, string>>>(defaults: T): Address<T> {
  const [params, setParams] = useSearchParams();
  const query = params.toString();
  const values = useMemo(() => {
    const given = Object.fromEntries(new URLSearchParams(query));
    return Object.fromEntries(
      Object.entries(defaults).map(([name, value]) => [name, given[name] ?? value]),
    ) as T;
  }, [query, defaults]);
  const change = useCallback(
    (changes: Partial<T>, { push } = { push: false }) =>
      setParams(
        (before) => {
          const after = new URLSearchParams(before);
          for (const [name, value = ""] of Object.entries(changes)) {
            if (value === "" || value === defaults[name]) after.delete(name);
            else after.set(name, value);
          }
          return after;
        },
        { replace: !push },
      ),
    [setParams, defaults],
  );
  return [values, change];
}

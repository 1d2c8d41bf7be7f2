import type { MongoStore } from "@devmesh/store/mongodb";
import { StoreUnavailable } from "@devmesh/store/store-unavailable";

/** The longest that one call may take that no caller's deadline bounds, in milliseconds. */
const writeMs = 10_000;
/** Added for the driver to be first with an error that says more, in milliseconds. */
const graceMs = 500;

/**
 * Runs one call of the driver that no caller's deadline bounds, within a bound of our own.
 * @throws StoreUnavailable also when the time is over.
 */
export async function asWriter<T>(
  store: MongoStore,
  work: (options: { readonly timeoutMS: number }) => Promise<T>,
): Promise<T> {
  const deadline = new AbortController();
  const timer = setTimeout(
    () => deadline.abort(new StoreUnavailable("the database did not answer in time")),
    writeMs + graceMs,
  );
  try {
    return await store.run(deadline.signal, () => work({ timeoutMS: writeMs }));
  } finally {
    clearTimeout(timer);
  }
}

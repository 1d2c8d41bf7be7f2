/**
 * The store cannot do it now, whatever the input (away, full, locked, broken), but may be able to again. What was asked may
 * have been done all the same when the store went away in the middle of it, unless the method says otherwise.
 */
export class StoreUnavailable extends Error {
  override readonly name = "StoreUnavailable";
}

import { type ComponentType, lazy } from "react";

/** A component whose module is loaded when it is first shown. */
export function lazyView<P>(load: () => Promise<ComponentType<P>>) {
  return lazy(async () => ({ default: await load() }));
}

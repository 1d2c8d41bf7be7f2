import type { JobsStore } from "../src/store/jobs-store.ts";

/** A store that was just made, empty, and how to open the same one again after closing it. */
export interface StoreUnderTest {
  open(): Promise<JobsStore>;
  remove(): Promise<void>;
}

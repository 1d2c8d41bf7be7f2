import type { Requirement } from "./requirements.ts";

/** A benchmark as `npm run bench` runs it. */
export interface Benchmark {
  /** Of its module in this folder. */
  readonly name: string;
  readonly args: readonly string[];
  readonly needs?: Requirement;
  /** Why it runs only when it is named. */
  readonly byHand?: string;
}

/** All benchmarks, in the order in which they run. Together they take less than 15 minutes. */
export const benchmarks: readonly Benchmark[] = [
  { name: "device-read", args: ["1.5"], needs: "peers" },
  { name: "rpc-round-trip", args: ["1.5"], needs: "peers" },
  { name: "replicas", args: ["1"] },
  { name: "mesh-start", args: ["3"] },
  { name: "mqtt-logins", args: [] },
  { name: "device-creations", args: ["2"] },
  { name: "device-list", args: ["20000"] },
  { name: "memory", args: [] },
  { name: "ingestion", args: ["20000"] },
  { name: "data-ingest", args: ["100000"] },
  { name: "data-query", args: ["200000"] },
  { name: "broker-sync", args: [], byHand: "it takes three minutes, on a slow disk a multiple of them" },
  {
    name: "dashboard",
    args: [],
    needs: "chromium",
    byHand: "any other work on the machine shows in its frames",
  },
  {
    name: "attack",
    args: ["6"],
    byHand: "attacks beside 3,000 and 10,000 devices, and the quiet phases between them, take seven minutes",
  },
  {
    name: "strangers",
    args: ["30"],
    needs: "haproxy",
    byHand: "without a proxy the attacks take gigabytes of memory and all processors",
  },
  {
    name: "data-stores",
    args: [],
    needs: "mongodb",
    byHand: "a million records in two stores take ten minutes",
  },
];

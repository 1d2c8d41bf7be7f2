import { execFile } from "node:child_process";
import { join } from "node:path";
import { promisify } from "node:util";
import { repository } from "@devmesh/launcher/mesh/service-process";
import { findChromium, withoutChromium } from "@devmesh/testkit/find-chromium";
import { findHaproxy, withoutHaproxy } from "@devmesh/testkit/mqtt-proxy";
import { installPeers } from "./peer.ts";

/** What must be there for a benchmark. */
export type Requirement = keyof typeof requirements;

/** Each provides what it can; null when it is there, else why not. */
export const requirements = {
  chromium: async () => ((await findChromium()) === null ? withoutChromium : null),
  haproxy: async () => ((await findHaproxy()) === null ? withoutHaproxy : null),
  mongodb: async () => (process.env.MONGODB_URL ? null : "no MONGODB_URL"),
  /** The type check of the root leaves the peers out, since it runs without their packages. */
  peers: async () => {
    await installPeers();
    const tsc = join(repository, "node_modules/.bin/tsc");
    return await promisify(execFile)(tsc, ["-p", "bench/peers"], { cwd: repository }).then(
      () => null,
      ({ stdout }: { stdout: string }) => `the types of bench/peers are wrong:\n${stdout}`,
    );
  },
} satisfies Record<string, () => Promise<string | null>>;

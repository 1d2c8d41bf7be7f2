import { shareBridge } from "./bridge-fixture.ts";
import { deltas } from "./one-bridge/delta.suite.ts";
import { deviceCalls } from "./one-bridge/rpc.suite.ts";
import { shadowMessages } from "./one-bridge/shadow.suite.ts";
import { wipes } from "./one-bridge/wipe.suite.ts";

/* Suites of which only the devices differ. Deltas come first, as they need a new broker. */
const shared = shareBridge();
for (const suite of [deltas, deviceCalls, shadowMessages, wipes]) suite(shared);

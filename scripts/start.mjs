#!/usr/bin/env node
import "./node-version.mjs";

// Not imported statically: an older Node could not even read it, and would not come to say so.
void import("./bootstrap.mjs").then(({ runOnPlatformNode }) =>
  runOnPlatformNode("src/launch.ts", process.argv.slice(2), { ownSession: true }),
);

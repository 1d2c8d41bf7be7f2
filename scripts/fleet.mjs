#!/usr/bin/env node
import "./node-version.mjs";

void import("./bootstrap.mjs").then(({ runOnPlatformNode }) =>
  runOnPlatformNode("src/fleet.ts", process.argv.slice(2), { ownSession: false }),
);

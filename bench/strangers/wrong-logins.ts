import { wrongLogins } from "@devmesh/testkit/strangers";
import { reportReady } from "../child.ts";

/** Sends wrong logins from another address for a while, and reports their number. */
const target = { port: Number(process.env.BENCH_PORT), from: "127.0.0.2" };
const sent = await wrongLogins(target, Number(process.env.BENCH_RATE), Number(process.env.BENCH_MS));
reportReady(sent);

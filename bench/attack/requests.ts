import { execFileSync } from "node:child_process";
import { once } from "node:events";
import { connect } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { reportReady } from "../child.ts";

/**
 * A stranger at 127.0.0.2: sends BENCH_REQUEST over and over on BENCH_CONNECTIONS connections, BENCH_REPEAT times in a
 * row, then BENCH_BODY_MB MB of a body. It connects again once a connection has ended, or all is answered.
 */
// The attacker has its own machine: here it gets only what processor time is left over, and delays nobody who wakes up.
execFileSync("chrt", ["--idle", "--all-tasks", "--pid", "0", String(process.pid)]);

const [port, connections, repeat, bodyMb, forMs] = ["PORT", "CONNECTIONS", "REPEAT", "BODY_MB", "MS"].map(
  (name) => Number(process.env[`BENCH_${name}`]),
) as [number, number, number, number, number];
const head = Buffer.from((process.env.BENCH_REQUEST ?? "").repeat(repeat));
const piece = Buffer.alloc(64 * 1024);
const end = performance.now() + forMs;
let [opened, sent, answered] = [0, 0, 0];

async function attack(): Promise<void> {
  const socket = connect({ port, host: "127.0.0.1", localAddress: "127.0.0.2" });
  let left = repeat;
  socket.on("error", () => socket.destroy());
  socket.on("data", (bytes) => {
    const answers = bytes.toString("latin1").split("HTTP/1.1 ").length - 1;
    answered += answers;
    left -= answers;
    if (left <= 0 && bodyMb === 0) socket.destroy();
  });
  const closed = new Promise((resolve) => socket.once("close", resolve));
  await Promise.race([once(socket, "connect").catch(() => undefined), closed]);
  opened++;
  socket.write(head);
  for (let bytes = 0; bytes < bodyMb * 1e6 && !socket.destroyed && performance.now() < end; ) {
    bytes += piece.length;
    if (!socket.write(piece)) await Promise.race([once(socket, "drain").catch(() => undefined), closed]);
  }
  await Promise.race([closed, sleep(Math.max(0, end - performance.now()))]);
  sent += socket.bytesWritten;
  socket.destroy();
}

await Promise.all(
  Array.from({ length: connections }, async () => {
    while (performance.now() < end) await attack();
  }),
);
const megabytes = (sent / 1e6).toFixed(1);
reportReady(`${opened} connections, ${megabytes} MB sent, ${answered} answers`);
process.disconnect();

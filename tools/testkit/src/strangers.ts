import { connect, type Socket } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { connect as connectTls } from "node:tls";
import { connectPacket } from "./connect-packet.ts";

/** Where strangers connect, and from which address of the loopback. */
export interface StrangersTarget {
  readonly port: number;
  readonly from: string;
  /** By TLS, whatever the certificate. */
  readonly tls?: boolean;
}

function open({ port, from, tls = false }: StrangersTarget): Socket {
  const place = { host: "127.0.0.1", port, localAddress: from, noDelay: true };
  const socket = tls ? connectTls({ ...place, rejectUnauthorized: false }) : connect(place);
  // A refused connection is what is expected.
  socket.on("error", () => undefined);
  return socket.resume();
}

/** Connects `count` times, sends `bytes` each time and leaves the connections open for `forMs`. */
async function sendAndStay(target: StrangersTarget, count: number, bytes: Buffer, forMs: number) {
  const sockets: Socket[] = [];
  for (let n = 0; n < count; n++) {
    const socket = open(target);
    socket.write(bytes);
    sockets.push(socket);
    if (n % 50 === 49) await sleep(1);
  }
  await sleep(forMs);
  for (const socket of sockets) socket.destroy();
}

/** CONNECT packets of a megabyte of which 900 KB arrive, which end before the broker's own bound of 5 s. */
export function unfinishedConnects(target: StrangersTarget, count: number): Promise<void> {
  const packet = Buffer.alloc(900_000, "x");
  // A CONNECT with a remaining length of 1,000,000.
  packet.set([0x10, 0xc0, 0x84, 0x3d]);
  return sendAndStay(target, count, packet, 4_000);
}

/** Whole CONNECT packets with a user name, a password and a client id of 60 KB. */
export function longNames(target: StrangersTarget, count: number): Promise<void> {
  const name = "x".repeat(60_000);
  return sendAndStay(target, count, connectPacket(name, name, name), 2_000);
}

/** Logins with the same wrong password at a steady rate, of a thousand devices; resolves with their number. */
export async function wrongLogins(
  target: StrangersTarget,
  perSecond: number,
  forMs: number,
): Promise<number> {
  const packets = Array.from({ length: 1_000 }, (_, n) =>
    connectPacket(`ghost-${n}`, `dt_${"x".repeat(32)}`, `ghost-${n}`),
  );
  const begin = performance.now();
  let sent = 0;
  while (performance.now() - begin < forMs) {
    const due = ((performance.now() - begin) / 1_000) * perSecond;
    for (; sent < due; sent++) {
      const socket = open(target);
      socket.write(packets[sent % packets.length] ?? "");
      // Where nothing bounds the logins, sockets would pile up.
      socket.setTimeout(20_000, () => socket.destroy());
    }
    await sleep(5);
  }
  return sent;
}

/** Logs in once and leaves; resolves with the milliseconds until the broker accepts, null when it does not. */
export async function logIn(
  target: StrangersTarget,
  id: string,
  token: string,
  withinMs = 20_000,
): Promise<number | null> {
  const begin = performance.now();
  const socket = open(target);
  socket.write(connectPacket(id, token, id));
  const accepted = await new Promise<boolean>((resolve) => {
    socket.once("data", (connack) => resolve(connack[3] === 0));
    socket.once("close", () => resolve(false));
    socket.setTimeout(withinMs, () => resolve(false));
  });
  socket.destroy();
  return accepted ? performance.now() - begin : null;
}

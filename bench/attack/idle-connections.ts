import { once } from "node:events";
import { connect } from "node:net";
import { reportReady } from "../child.ts";

/** Opens BENCH_CONNECTIONS connections, from BENCH_ADDRESSES addresses in turn, and leaves them idle. */
const [port, connections, addresses] = ["PORT", "CONNECTIONS", "ADDRESSES"].map((name) =>
  Number(process.env[`BENCH_${name}`]),
) as [number, number, number];
const atATime = 100;
let closed = 0;
for (let nth = 0; nth < connections; nth += atATime)
  await Promise.all(
    Array.from({ length: atATime }, async (_, at) => {
      const localAddress = `127.0.1.${1 + ((nth + at) % addresses)}`;
      const socket = connect({ port, host: "127.0.0.1", localAddress });
      socket.on("error", () => undefined).on("close", () => closed++);
      await once(socket.resume(), "connect");
    }),
  );
reportReady(`${connections - closed} of ${connections} connections are open`);

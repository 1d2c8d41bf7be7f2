import { connect, createServer } from "node:net";
import { pipeline } from "node:stream";

// Run in a network namespace: hands each connection on to a Unix socket, which is found from every namespace.

const [address = "", port = "", socketPath = ""] = process.argv.slice(2);
createServer((outside) => {
  const inside = connect(socketPath);
  // Either end may go at any time; the other goes with it.
  pipeline(outside, inside, () => {});
  pipeline(inside, outside, () => {});
}).listen(Number(port), address, () => process.stdout.write("listens\n"));
// Ends with who started it.
process.stdin.resume().on("end", () => process.exit(0));

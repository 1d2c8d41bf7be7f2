import { connect, createServer } from "node:net";
import { pipeline } from "node:stream";

// Run in a network namespace: forwards connections to a Unix socket, which every namespace can reach.

const [address = "", port = "", socketPath = ""] = process.argv.slice(2);
createServer((outside) => {
  const inside = connect(socketPath);
  // When one end closes, so does the other.
  pipeline(outside, inside, () => {});
  pipeline(inside, outside, () => {});
}).listen(Number(port), address, () => process.stdout.write("listens\n"));
// Ends with its parent.
process.stdin.resume().on("end", () => process.exit(0));

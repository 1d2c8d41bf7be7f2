import { type ChildProcess, execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { writeFile } from "node:fs/promises";
import { connect, createServer } from "node:net";
import { join } from "node:path";
import { pipeline } from "node:stream";
import { promisify } from "node:util";

const run = promisify(execFile);

/** Prefix of the pods' addresses. */
const prefix = "10.77.0.";

/** A separate network for pods, on which every port is free. */
export interface PodNetwork extends AsyncDisposable {
  /** Process with the network namespace of the bridge. */
  readonly switchPid: number;
  /** A file like `/etc/hosts` with all names. */
  readonly hostsFile: string;
  /** A new address, under these names. */
  join(names: readonly string[]): Promise<string>;
  /** Makes a server of this machine available under these names and this port. */
  admit(names: readonly string[], port: number, server: Address): Promise<void>;
}

/** Where a server of this machine listens. */
interface Address {
  readonly host: string;
  readonly port: number;
}

/** Whether this process can make namespaces, as root, and has the tools. */
export async function canRunPods(): Promise<boolean> {
  if (process.getuid?.() !== 0) return false;
  const trial =
    "ip link add pods type bridge && mount -t tmpfs x /mnt && command -v nsenter setpriv chroot wget >/dev/null";
  return await run("unshare", ["--net", "--mount", "sh", "-c", trial]).then(
    () => true,
    () => false,
  );
}

/** Makes a network with files in `folder`; disposal ends all that runs there. */
export async function startPodNetwork(folder: string): Promise<PodNetwork> {
  const hostsFile = join(folder, "hosts");
  const hosts = ["127.0.0.1 localhost"];
  let addresses = 10;
  await writeFile(hostsFile, `${hosts.join("\n")}\n`);
  // Ends when this process closes its input.
  const bridge = [
    "ip link set lo up",
    "ip link add pods type bridge",
    `ip address add ${prefix}1/24 dev pods`,
    "ip link set pods up",
    "echo up",
    "cat",
  ].join(" && ");
  const holder: ChildProcess = spawn("unshare", ["--net", "sh", "-c", bridge], {
    stdio: ["pipe", "pipe", "inherit"],
  });
  if (holder.stdout === null || holder.pid === undefined) throw new Error("unshare could not be run");
  const up = await Promise.race([once(holder.stdout, "data"), once(holder, "exit")]);
  if (!String(up[0]).includes("up")) throw new Error("no bridge could be made");
  const switchPid = holder.pid;
  const relays = new AsyncDisposableStack();
  const name = async (address: string, names: readonly string[]) => {
    hosts.push(`${address} ${names.join(" ")}`);
    await writeFile(hostsFile, `${hosts.join("\n")}\n`);
  };
  return {
    switchPid,
    hostsFile,
    async join(names) {
      const address = `${prefix}${addresses}`;
      addresses += 1;
      await name(address, names);
      return address;
    },
    async admit(names, port, server) {
      relays.use(await startRelay(switchPid, `${prefix}1`, port, join(folder, `relay-${port}`), server));
      await name(`${prefix}1`, names);
    },
    async [Symbol.asyncDispose]() {
      await relays.disposeAsync();
      const ended = once(holder, "exit");
      holder.stdin?.end();
      await ended;
    },
  };
}

/** A process in the network listens, and this process, outside, connects. */
async function startRelay(
  switchPid: number,
  address: string,
  port: number,
  socketPath: string,
  server: Address,
): Promise<AsyncDisposable> {
  const outside = createServer((inside) => {
    const connection = connect(server);
    pipeline(inside, connection, () => {});
    pipeline(connection, inside, () => {});
  });
  await new Promise<void>((resolve) => outside.listen(socketPath, resolve));
  const program = [
    process.execPath,
    "--disable-warning=ExperimentalWarning",
    join(import.meta.dirname, "relay.ts"),
  ];
  const relay = spawn(
    "nsenter",
    ["--target", String(switchPid), "--net", ...program, address, String(port), socketPath],
    { stdio: ["pipe", "pipe", "inherit"] },
  );
  const ended = once(relay, "exit");
  const said = await Promise.race([once(relay.stdout, "data"), ended]);
  if (!String(said[0]).includes("listens")) throw new Error(`the relay of port ${port} does not listen`);
  return {
    async [Symbol.asyncDispose]() {
      relay.stdin.end();
      await ended;
      await new Promise((resolve) => outside.close(resolve));
    },
  };
}

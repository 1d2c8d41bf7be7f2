import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Socket } from "node:net";

/** Which half of a command's way is held up. */
export type HeldHalf = "request" | "answer";

/** A way to a MongoDB server on which a test holds one command up, and lets it arrive much later. */
export interface CommandGate extends AsyncDisposable {
  /** Of 127.0.0.1. */
  readonly port: number;
  /** Names of the commands that came by since the last {@link holdAt}. */
  readonly commands: readonly string[];
  /**
   * Holds the `count`th command from now on, or its answer, and all that follows; resolves when it is held. With a
   * name, only commands of that name count.
   */
  holdAt(count: number, half: HeldHalf, name?: string): Promise<void>;
  /** Holds each command that contains the text, and nothing else. */
  holdThoseWith(text: string): void;
  /** How many commands {@link holdThoseWith} holds now. */
  readonly holding: number;
  /** Lets everything arrive that was held, in its order. */
  release(): void;
}

/** Of the driver's own talk, which is never held. */
const ownTalk = new Set(["hello", "ismaster", "ping", "endSessions", "buildInfo"]);

/** Passes messages of MongoDB's protocol on to a port of 127.0.0.1. */
export async function startCommandGate(targetPort: number): Promise<CommandGate> {
  const sockets = new Set<Socket>();
  let commands: string[] = [];
  let plan: {
    readonly count: number;
    readonly half: HeldHalf;
    readonly name: string | undefined;
    readonly held: () => void;
  } | null = null;
  let isHolding = false;
  let heldText: string | null = null;
  let holding = 0;
  let kept: (() => void)[] = [];

  const server = createServer((client) => {
    const target = connect(targetPort, "127.0.0.1");
    let answersToHold = false;
    for (const socket of [client, target]) {
      sockets.add(socket);
      socket.on("error", () => socket.destroy());
      socket.on("close", () => sockets.delete(socket));
    }
    client.on("close", () => isHolding || target.end());
    target.on("close", () => client.destroy());
    client.on(
      "data",
      inMessages((message) => {
        const command = commandOf(message);
        if (heldText !== null && message.includes(heldText)) {
          holding++;
          kept.push(() => target.write(message));
          return;
        }
        const counts = command !== null && !ownTalk.has(command);
        if (counts && !isHolding && (plan?.name === undefined || plan.name === command)) {
          commands.push(command);
          if (commands.length === plan?.count) {
            isHolding = true;
            answersToHold = plan.half === "answer";
            if (answersToHold) target.write(message);
            else kept.push(() => target.write(message));
            plan.held();
            return;
          }
        }
        if (isHolding && counts) kept.push(() => target.write(message));
        else target.write(message);
      }),
    );
    target.on(
      "data",
      inMessages((message) => {
        if (isHolding && answersToHold) kept.push(() => client.write(message));
        else client.write(message);
      }),
    );
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    port: (server.address() as AddressInfo).port,
    get commands() {
      return commands;
    },
    holdAt(count, half, name) {
      commands = [];
      return new Promise((held) => {
        plan = { count, half, name, held };
      });
    },
    holdThoseWith(text) {
      heldText = text;
    },
    get holding() {
      return holding;
    },
    release() {
      isHolding = false;
      heldText = null;
      holding = 0;
      plan = null;
      for (const pass of kept) pass();
      kept = [];
    },
    async [Symbol.asyncDispose]() {
      server.close();
      for (const socket of sockets) socket.destroy();
      await once(server, "close");
    },
  };
}

/** Cuts a stream of bytes into messages; each begins with its length. */
function inMessages(take: (message: Buffer) => void): (bytes: Buffer) => void {
  let waiting: Buffer = Buffer.alloc(0);
  return (bytes) => {
    waiting = Buffer.concat([waiting, bytes]);
    while (waiting.length >= 4 && waiting.length >= waiting.readInt32LE(0)) {
      const length = waiting.readInt32LE(0);
      take(waiting.subarray(0, length));
      waiting = waiting.subarray(length);
    }
  };
}

/** The first member of the command document of an `OP_MSG`; null of another message. */
function commandOf(message: Buffer): string | null {
  const opMsg = 2_013;
  // Header (16 bytes), flags (4), kind of section (1), length of the document (4), type of its first member (1).
  if (message.readInt32LE(12) !== opMsg || message[20] !== 0) return null;
  const name = message.subarray(26, message.indexOf(0, 26));
  return name.toString("latin1");
}

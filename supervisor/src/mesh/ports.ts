import { createServer } from "node:net";
import { StartFailure } from "../process/errors.ts";

/** A port that the mesh will listen on, with the variables of its address. */
export interface WantedPort {
  readonly variable: string;
  readonly port: number;
  readonly hostVariable: string;
  readonly host: string;
}

/** Throws a {@link StartFailure} for the first port that is wanted twice or cannot be listened on. */
export async function checkPorts(wanted: readonly WantedPort[]): Promise<void> {
  const taken = new Map<number, string>();
  for (const { variable, port } of wanted) {
    const other = taken.get(port);
    if (other)
      throw new StartFailure(`${other} and ${variable} are both ${port}; give one of them another port.`);
    taken.set(port, variable);
  }
  for (const { variable, port, hostVariable, host } of wanted) {
    const code = await tryListen(host, port);
    if (code === "EADDRINUSE") {
      throw new StartFailure(`Port ${port} is in use already; set ${variable} to another one.`);
    }
    if (code === "EACCES")
      throw new StartFailure(`Port ${port} needs more rights; set ${variable} to one above 1023.`);
    if (code === "EADDRNOTAVAIL" || code === "ENOTFOUND") {
      throw new StartFailure(
        `${host} is not an address of this machine; set ${hostVariable} to one that is.`,
      );
    }
    if (code)
      throw new StartFailure(
        `Port ${port} of ${host} cannot be listened on (${code}); set ${variable} or ${hostVariable}.`,
      );
  }
}

function tryListen(host: string, port: number): Promise<string | null> {
  return new Promise((resolve) => {
    const server = createServer();
    server.once("error", (error: NodeJS.ErrnoException) => resolve(error.code ?? error.message));
    server.listen({ host, port, exclusive: true }, () => server.close(() => resolve(null)));
  });
}

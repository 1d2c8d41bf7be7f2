import { createServer } from "node:http";
import type { AddressInfo } from "node:net";

/** A Secret as the API server keeps it. */
interface KeptSecret {
  metadata: { name: string; namespace: string; resourceVersion: string; labels?: Record<string, string> };
  data?: Record<string, string>;
}

/** A fake of Kubernetes' API server with one Secret, for callers with the right token. */
export interface FakeApiServer extends AsyncDisposable {
  readonly url: string;
  readonly secret: KeptSecret;
  /** Requests that came, as `METHOD path`. */
  readonly requests: readonly string[];
  /** Runs after the next read, before anything else is answered: somebody else's write, for instance. */
  afterNextRead(action: () => void): void;
  /** Answers everything so from now on. */
  failWith(status: number): void;
}

/** Starts on a free port of 127.0.0.1, with an empty Secret of that name. */
export async function startApiServer(token: string, namespace: string, name: string): Promise<FakeApiServer> {
  const secret: KeptSecret = {
    metadata: { name, namespace, resourceVersion: "1", labels: { "app.kubernetes.io/part-of": "devmesh" } },
  };
  const requests: string[] = [];
  let afterRead: (() => void) | null = null;
  let failure: number | null = null;

  function decide(
    method: string,
    path: string,
    authorization: string | undefined,
    body: string,
  ): [number, unknown] {
    if (failure !== null) return [failure, { kind: "Status", message: `about ${body}` }];
    if (authorization !== `Bearer ${token}`) return [401, { kind: "Status" }];
    if (path !== `/api/v1/namespaces/${namespace}/secrets/${name}`) return [403, { kind: "Status" }];
    if (method === "GET") {
      const found = structuredClone(secret);
      afterRead?.();
      afterRead = null;
      return [200, { apiVersion: "v1", kind: "Secret", ...found }];
    }
    if (method !== "PUT") return [405, { kind: "Status" }];
    const written: KeptSecret = JSON.parse(body);
    if (written.metadata.resourceVersion !== secret.metadata.resourceVersion)
      return [409, { kind: "Status" }];
    secret.metadata = {
      ...written.metadata,
      resourceVersion: String(Number(secret.metadata.resourceVersion) + 1),
    };
    if (written.data !== undefined) secret.data = written.data;
    return [200, secret];
  }

  const server = createServer((request, response) => {
    let body = "";
    request.setEncoding("utf8").on("data", (text: string) => {
      body += text;
    });
    request.on("end", () => {
      const { method = "", url = "", headers } = request;
      requests.push(`${method} ${url}`);
      const [status, answer] = decide(method, url, headers.authorization, body);
      response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(answer));
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    secret,
    requests,
    afterNextRead(action) {
      afterRead = action;
    },
    failWith(status) {
      failure = status;
    },
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

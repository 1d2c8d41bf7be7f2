import { createServer } from "node:https";
import type { AddressInfo } from "node:net";
import { authorisedCertificate } from "@devmesh/testkit/test-certificate";

/** Kubernetes' API server, as far as a Job needs it that reads and writes one Secret. */
export interface ApiServer extends AsyncDisposable {
  readonly port: number;
  /** What the Secret holds, decoded. */
  secret(): Readonly<Record<string, string>>;
}

/** Starts on 127.0.0.1 with TLS, under the certificate of the test authority; the Secret is there and empty. */
export async function startApiServer(path: string, token: string): Promise<ApiServer> {
  let secret: { data?: Record<string, string> } = {};
  const server = createServer(
    { cert: authorisedCertificate.cert, key: authorisedCertificate.key },
    (request, response) => {
      let body = "";
      request.setEncoding("utf8").on("data", (text: string) => {
        body += text;
      });
      request.on("end", () => {
        const known = request.headers.authorization === `Bearer ${token}` && request.url === path;
        if (known && request.method === "PUT") secret = JSON.parse(body);
        response
          .writeHead(known ? 200 : 403, { "content-type": "application/json" })
          .end(JSON.stringify(secret));
      });
    },
  );
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    port: (server.address() as AddressInfo).port,
    secret: () =>
      Object.fromEntries(
        Object.entries(secret.data ?? {}).map(([name, value]) => [
          name,
          Buffer.from(value, "base64").toString(),
        ]),
      ),
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

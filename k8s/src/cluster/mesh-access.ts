import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { z } from "zod";
import type { Kubectl } from "./kubectl.ts";

/** How the running mesh is reached from outside. */
export interface ClusterAccess {
  /** Of the gateway, without a slash at the end. */
  readonly url: string;
  /** Several, comma-separated, are used in turn. */
  readonly mqttUrl: string;
  readonly masterKey: string;
  /** PEM file of the certificate that the brokers show; null for MQTT without TLS. */
  readonly mqttCertificate: string | null;
}

const Secret = z.object({ data: z.record(z.string(), z.string()) });

/**
 * Finds the way to the mesh: by the given addresses, else by ports that kubectl forwards until `closing` is disposed.
 * Reads the first master key and the certificate out of their Secrets; `folder` gets the file.
 */
export async function accessMesh(
  kubectl: Kubectl,
  addresses: { readonly http: string | undefined; readonly mqtt: string | undefined },
  folder: string,
  closing: AsyncDisposableStack,
): Promise<ClusterAccess> {
  const secret = async (name: string, key: string) => {
    const { data } = Secret.parse(JSON.parse(await kubectl.run(["get", "secret", name, "-o", "json"])));
    return Buffer.from(data[key] ?? "", "base64").toString("utf8");
  };
  const forwarded = async (service: string, port: number) =>
    closing.use(await kubectl.forward(service, port)).port;
  const mqttCertificate = join(folder, "mqtt.pem");
  await writeFile(mqttCertificate, await secret("mqtt-tls", "tls.crt"));
  return {
    url: addresses.http?.replace(/\/$/, "") ?? `http://127.0.0.1:${await forwarded("gateway", 80)}`,
    mqttUrl: addresses.mqtt ?? `mqtts://127.0.0.1:${await forwarded("mqtt", 8883)}`,
    masterKey: await secret("master-key", "MASTER_KEY"),
    mqttCertificate,
  };
}

import { execFile } from "node:child_process";
import { join } from "node:path";
import { promisify } from "node:util";
import { deploymentSecrets } from "@devmesh/launcher/deployment/deployment-secrets";
import { externalMongodb } from "@devmesh/launcher/deployment/external-mongodb";
import { kubernetesSecrets } from "@devmesh/launcher/deployment/kubernetes-secrets";
import { repository } from "@devmesh/supervisor/mesh/service-process";
import { StartFailure } from "@devmesh/supervisor/process/errors";
import type { Kubectl } from "./kubectl.ts";

/** What the Secrets are made from where the namespace has none. */
export interface Preparation {
  /** Keeps the secrets of the installation, see `npm run secrets`. */
  readonly installation: string;
  readonly withMongodb: boolean;
  /** A MongoDB elsewhere: its URL without a database. */
  readonly mongodb: string | undefined;
  /** For keys and certificates on their way. */
  readonly folder: string;
}

/** Makes the namespace and those Secrets that it lacks; certificates are self-signed. */
export async function prepareNamespace(kubectl: Kubectl, preparation: Preparation): Promise<void> {
  const { installation, withMongodb, mongodb, folder } = preparation;
  await kubectl.run(["apply", "-f", join(repository, "k8s/base/mesh/namespace.yaml")]);
  const found = new Set((await kubectl.run(["get", "secrets", "-o", "name"])).split("\n"));
  if (!found.has("secret/nats")) {
    const secrets = await deploymentSecrets(installation);
    const smtpUrl = process.env.SMTP_URL ?? "smtp://mail.example.com";
    await apply(kubectl, kubernetesSecrets({ secrets, smtpUrl, withMongodb }));
  }
  for (const name of ["mqtt-tls", "http-tls"]) {
    if (!found.has(`secret/${name}`)) await makeCertificate(kubectl, name, folder);
  }
  if (mongodb !== undefined) {
    const external = externalMongodb(mongodb);
    if (external === null) throw new StartFailure("--mongodb takes mongodb://HOSTS, without a database.");
    await apply(kubectl, external);
  }
}

async function apply(kubectl: Kubectl, items: readonly object[]): Promise<void> {
  await kubectl.run(["apply", "-f", "-"], JSON.stringify({ apiVersion: "v1", kind: "List", items }));
}

async function makeCertificate(kubectl: Kubectl, name: string, folder: string): Promise<void> {
  const [cert, key] = [join(folder, `${name}.pem`), join(folder, `${name}-key.pem`)];
  const subject = ["-subj", "/CN=devmesh.example.com", "-days", "30", "-keyout", key, "-out", cert];
  const curve = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1"];
  await promisify(execFile)("openssl", ["req", "-x509", "-nodes", ...curve, ...subject]);
  await kubectl.run(["create", "secret", "tls", name, `--cert=${cert}`, `--key=${key}`]);
}

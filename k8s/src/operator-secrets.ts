import { join } from "node:path";
import { deploymentSecrets } from "@devmesh/launcher/deployment/deployment-secrets";
import { kubernetesSecrets } from "@devmesh/launcher/deployment/kubernetes-secrets";
import { tempFolder } from "@devmesh/testkit/temp-folder";
import { foreignCertificate } from "@devmesh/testkit/test-certificate";
import type { SecretContents } from "./container-environment.ts";

/** New Secrets, as docs/operations describes them. */
export async function makeOperatorSecrets(): Promise<SecretContents> {
  await using folder = await tempFolder();
  const secrets = await deploymentSecrets(join(folder.path, "installation.json"));
  const smtpUrl = "smtps://devmesh:not-a-password@mail.example.com";
  const made = kubernetesSecrets({ secrets, smtpUrl, withMongodb: true });
  const certificate = { "tls.crt": foreignCertificate.cert, "tls.key": foreignCertificate.key };
  return new Map<string, Readonly<Record<string, string>>>([
    ...made.map(({ metadata, stringData }) => [metadata.name, stringData] as const),
    ["mqtt-tls", certificate],
    ["http-tls", certificate],
    ["master-key", { MASTER_KEY: `mk_${"0123456789abcdef".repeat(2)}` }],
  ]);
}

import { parseArgs } from "node:util";
import { helpOption, runCommand, WrongUsage } from "@devmesh/supervisor/process/command";
import { StartFailure } from "@devmesh/supervisor/process/errors";
import { z } from "zod";
import { composeEnvironment, type DeploymentSecrets, deploymentSecrets } from "./deployment-secrets.ts";
import { externalMongodb } from "./external-mongodb.ts";
import { kubernetesSecrets } from "./kubernetes-secrets.ts";

const usage = `Usage: (umask 077; npm run --silent secrets -- compose > .env)
       npm run --silent secrets -- kubernetes [--without-mongodb] | kubectl apply -n NAMESPACE -f -

Prints the secrets of a deployment, as a file .env for compose or as Secrets for Kubernetes (with SMTP_URL from the environment). They
are kept in installation.json (mode 0600), another with --installation FILE, and made where that file does not have them yet: keep it
safe, apart from the backups of the stores, which cannot be read without it.

For a MongoDB of your own set MONGODB_URL, such as mongodb://USER:PASSWORD@HOST:27018/?authSource=admin: then a NetworkPolicy for its
port is printed, too, and the Secrets with STORE_URL name a database for each service.

  --without-mongodb    for SQLite: leaves out the Secrets of MongoDB and those with STORE_URL`;

const SmtpUrl = z.url({ protocol: /^smtps?$/ });

interface SecretsOptions {
  readonly kind: "compose" | "kubernetes";
  readonly file: string;
  readonly withMongodb: boolean;
}

function read(args: string[]): SecretsOptions | "help" {
  const { values, positionals } = parseArgs({
    args,
    allowPositionals: true,
    options: {
      installation: { type: "string", default: "installation.json" },
      "without-mongodb": { type: "boolean", default: false },
      ...helpOption,
    },
  });
  if (values.help) return "help";
  const [kind, ...others] = positionals;
  if ((kind !== "compose" && kind !== "kubernetes") || others.length > 0)
    throw new WrongUsage("Say compose or kubernetes.");
  return { kind, file: values.installation, withMongodb: !values["without-mongodb"] };
}

/** The Secrets as a List in JSON. */
function kubernetesList(secrets: DeploymentSecrets, withMongodb: boolean): string {
  const smtpUrl = SmtpUrl.safeParse(process.env.SMTP_URL);
  if (!smtpUrl.success) {
    throw new StartFailure("Set SMTP_URL to the server that takes mail, such as smtps://USER:PASSWORD@HOST.");
  }
  const url = withMongodb ? process.env.MONGODB_URL : undefined;
  const external = url ? externalMongodb(url) : [];
  if (external === null)
    throw new StartFailure("MONGODB_URL must be mongodb://USER:PASSWORD@HOSTS/?OPTIONS, without a database.");
  const items = [
    ...kubernetesSecrets({
      secrets,
      smtpUrl: smtpUrl.data,
      withMongodb: withMongodb && external.length === 0,
    }),
    ...external,
  ];
  return `${JSON.stringify({ apiVersion: "v1", kind: "List", items }, null, 2)}\n`;
}

async function run({ kind, file, withMongodb }: SecretsOptions): Promise<void> {
  const secrets = await deploymentSecrets(file);
  process.stdout.write(
    kind === "compose" ? composeEnvironment(secrets) : kubernetesList(secrets, withMongodb),
  );
}

await runCommand({ usage, read, run });

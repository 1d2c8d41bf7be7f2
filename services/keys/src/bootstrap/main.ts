import { parseEnv } from "@devmesh/service-kit/process/env";
import { BootstrapEnv } from "./env.ts";
import { ensureMasterKeySecret } from "./master-key-secret.ts";

// The Job `bootstrap` of k8s/base. Kubernetes runs it again when it ends with code 1.
const env = parseEnv(BootstrapEnv);
try {
  const outcome = await ensureMasterKeySecret(env);
  process.stdout.write(
    outcome === "made"
      ? `The first master key is in the Secret ${env.MASTER_KEY_SECRET}.\n`
      : `The Secret ${env.MASTER_KEY_SECRET} holds a master key already.\n`,
  );
} catch (error) {
  process.stderr.write(`No master key: ${reasonsOf(error).join(": ")}.\n`);
  process.exitCode = 1;
}

/** The message of an error and those of what caused it. */
function reasonsOf(error: unknown): string[] {
  if (!(error instanceof Error)) return [String(error)];
  return error.cause === undefined ? [error.message] : [error.message, ...reasonsOf(error.cause)];
}

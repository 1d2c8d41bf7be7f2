import { z } from "zod";
import { type Container, type KubernetesObject, ofKind } from "./manifest.ts";

/** Content of the operator's Secrets, by name. */
export type SecretContents = ReadonlyMap<string, Readonly<Record<string, string>>>;

/** The environment of a container in Kubernetes. Throws for a missing reference. */
export function containerEnvironment(
  container: Container,
  objects: readonly KubernetesObject[],
  secrets: SecretContents,
  podName: string,
): Record<string, string> {
  const secretData = (name: string) => present(secrets.get(name), `the Secret ${name}`);
  const configMapData = (name: string) => {
    const found = ofKind(objects, "ConfigMap").find(({ metadata }) => metadata.name === name);
    return z.record(z.string(), z.string()).parse(present(found, `the ConfigMap ${name}`).data ?? {});
  };
  const env: Record<string, string> = {};
  for (const { configMapRef, secretRef } of container.envFrom) {
    if (configMapRef) Object.assign(env, configMapData(configMapRef.name));
    if (secretRef) Object.assign(env, secretData(secretRef.name));
  }
  for (const { name, value, valueFrom } of container.env) {
    if (value !== undefined) env[name] = expanded(value, env);
    if (valueFrom?.secretKeyRef) {
      const { name: secret, key } = valueFrom.secretKeyRef;
      env[name] = present(secretData(secret)[key], `${key} of the Secret ${secret}`);
    }
    if (valueFrom?.fieldRef?.fieldPath === "metadata.name") env[name] = podName;
  }
  return env;
}

/** `$(NAME)` is replaced if the variable is set before. */
function expanded(value: string, env: Readonly<Record<string, string>>): string {
  return value.replaceAll(/\$\((\w+)\)/g, (reference, name: string) => env[name] ?? reference);
}

function present<T>(value: T | undefined, what: string): T {
  if (value === undefined) throw new Error(`${what} is not there`);
  return value;
}

import { join } from "node:path";
import { cacheFolder, putIntoCache } from "@devmesh/launcher/nats-server/binary-cache";
import { type GoProgram, goInstall } from "@devmesh/launcher/nats-server/go-install";
import { executablesOnPath, isExecutable } from "@devmesh/launcher/nats-server/path-search";

/** Builds manifests out of the folders of `k8s/`. */
export const kustomize: GoProgram = {
  module: "sigs.k8s.io/kustomize/kustomize/v5@v5.8.1",
  binary: "kustomize",
};

/** Reads compose files as `docker compose config` does. */
export const composeConfig: GoProgram = {
  module: "github.com/compose-spec/compose-go/v2/cmd@v2.16.2",
  binary: "cmd",
};

/** Lints manifests. */
export const kubeScore: GoProgram = {
  module: "github.com/zegl/kube-score/cmd/kube-score@v1.20.0",
  binary: "kube-score",
};

/** Path of a program, built once into the cache of nats-server; null without Go. Throws Go's message. */
export async function findGoProgram(name: string, program: GoProgram): Promise<string | null> {
  const version = program.module.split("@")[1];
  const cached = join(cacheFolder(process.env), `${name}-${version}`);
  if (await isExecutable(cached)) return cached;
  const [go] = await executablesOnPath("go", process.env.PATH);
  if (go === undefined) return null;
  await putIntoCache(cached, (unfinished) => goInstall(go, program, unfinished, process.env));
  return cached;
}

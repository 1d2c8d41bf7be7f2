import { setTimeout as sleep } from "node:timers/promises";
import { z } from "zod";
import type { Kubectl } from "./kubectl.ts";

/** Longest wait for pods, and the pause between two looks at them, in milliseconds. */
const PODS_MS = 15 * 60_000;
const LOOK_MS = 500;

const Pods = z.object({
  items: z.array(
    z.object({
      metadata: z.object({ name: z.string(), uid: z.string(), deletionTimestamp: z.string().optional() }),
      status: z.object({
        phase: z.string(),
        conditions: z.array(z.object({ type: z.string(), status: z.string() })).default([]),
      }),
    }),
  ),
});
type Pod = z.infer<typeof Pods>["items"][number];

const Autoscalers = z.object({
  items: z.array(
    z.object({ spec: z.object({ minReplicas: z.number(), scaleTargetRef: z.object({ name: z.string() }) }) }),
  ),
});

const Replicas = z.object({ spec: z.object({ replicas: z.number().default(1) }) });

/** Waits until every workload has the pods it should have, all ready, and none is ending. */
export async function awaitReady(kubectl: Kubectl): Promise<void> {
  const { items } = Autoscalers.parse(JSON.parse(await kubectl.run(["get", "hpa", "-o", "json"])));
  for (const { spec } of items) {
    await until(`${spec.minReplicas} replicas of ${spec.scaleTargetRef.name}`, async () => {
      const deployment = await kubectl.run(["get", "deployment", spec.scaleTargetRef.name, "-o", "json"]);
      return Replicas.parse(JSON.parse(deployment)).spec.replicas >= spec.minReplicas;
    });
  }
  const workloads = await kubectl.run(["get", "deployments,statefulsets", "-o", "name"]);
  for (const workload of workloads.split("\n"))
    await kubectl.run(["rollout", "status", workload, `--timeout=${PODS_MS / 1_000}s`]);
  await until("all pods ready", async () => (await podsOf(kubectl)).every(isSettled));
}

/** What can be rolled: each service, and each server of nats by its pod. */
export async function rollable(kubectl: Kubectl): Promise<readonly string[]> {
  const deployments = await kubectl.run(["get", "deployments", "-o", "jsonpath={.items[*].metadata.name}"]);
  const servers = (await podsOf(kubectl, "app.kubernetes.io/name=nats")).map(({ metadata }) => metadata.name);
  return [...deployments.split(" "), ...servers.sort()];
}

/** Replaces the pods of a service as an upgrade does, or one server of nats; waits until all is ready again. */
export async function roll(kubectl: Kubectl, name: string): Promise<void> {
  if (/^nats-\d+$/.test(name)) {
    const former = (await podsOf(kubectl)).find(({ metadata }) => metadata.name === name)?.metadata.uid;
    await kubectl.run(["delete", "pod", name]);
    await until(`${name} ready`, async () =>
      (await podsOf(kubectl)).some(
        (pod) => pod.metadata.name === name && pod.metadata.uid !== former && isSettled(pod),
      ),
    );
  } else {
    await kubectl.run(["rollout", "restart", `deployment/${name}`]);
  }
  await awaitReady(kubectl);
}

async function podsOf(kubectl: Kubectl, selector?: string): Promise<readonly Pod[]> {
  const only = selector === undefined ? [] : [`--selector=${selector}`];
  return Pods.parse(JSON.parse(await kubectl.run(["get", "pods", ...only, "-o", "json"]))).items;
}

/** Ready and not ending; a pod that has ended for good is settled, too. */
function isSettled({ metadata, status }: Pod): boolean {
  if (metadata.deletionTimestamp !== undefined) return false;
  const isReady = status.conditions.some(
    (condition) => condition.type === "Ready" && condition.status === "True",
  );
  return status.phase === "Succeeded" || status.phase === "Failed" || isReady;
}

async function until(what: string, check: () => Promise<boolean>): Promise<void> {
  const end = performance.now() + PODS_MS;
  while (!(await check())) {
    if (performance.now() > end) throw new Error(`not in time: ${what}`);
    await sleep(LOOK_MS);
  }
}

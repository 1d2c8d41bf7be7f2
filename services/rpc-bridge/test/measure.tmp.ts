import { startBridge, startTestMesh } from "./test-mesh.ts";

const ids = Array.from({ length: 10 }, (_, n) => `d${n}`);
const mesh = await startTestMesh(ids);
const bridge = await startBridge(mesh, { LOG_LEVEL: "warn" });
for (const id of ids) {
  const d = await mesh.connect(id);
  await d.answerRpc(() => ({ result: true }));
}
const one = async (id: string, out: number[]) => {
  const t = performance.now();
  await mesh.call({ device_id: id, params: { a: 1 } });
  out.push(performance.now() - t);
};
for (const inflight of [1, 100, 100, 300]) {
  const out: number[] = [];
  const total = inflight === 1 ? 3000 : 30000;
  let n = 0;
  const t = performance.now();
  await Promise.all(
    Array.from({ length: inflight }, async () => {
      while (n++ < total) await one(ids[n % 10] as string, out);
    }),
  );
  const s = (performance.now() - t) / 1000;
  out.sort((a, b) => a - b);
  console.log(
    inflight,
    "in flight:",
    Math.round(out.length / s),
    "/s p50",
    out[out.length >> 1]?.toFixed(2),
    "p99",
    out[Math.floor(out.length * 0.99)]?.toFixed(2),
  );
}
await bridge.end("SIGTERM");
await mesh[Symbol.asyncDispose]();
process.exit(0);

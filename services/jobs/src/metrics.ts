import { metricsOn } from "@devmesh/service-kit/metrics";
import { Gauge, type Registry } from "prom-client";

/** What the service counts. */
export type JobsMetrics = ReturnType<typeof createJobsMetrics>;

/** What each scrape reads. */
interface MeasuredJobs {
  leads(): boolean;
  inFlight(): number;
  countOpen(): Promise<{ readonly queued: number; readonly sent: number }>;
  countFirmwareBytes(): Promise<number>;
}

/** Registers the metrics of the service. */
export function createJobsMetrics(registry: Registry, measured: MeasuredJobs) {
  const { counter, histogram, measuredGauge } = metricsOn(registry);
  measuredGauge("devmesh_jobs_leader", "1 in the replica that sends.", () => (measured.leads() ? 1 : 0));
  measuredGauge("devmesh_jobs_in_flight", "Devices that are being called.", () => measured.inFlight());
  new Gauge({
    name: "devmesh_jobs_executions",
    help: "Executions that have not ended; of the replica that sends.",
    labelNames: ["state"],
    registers: [registry],
    async collect() {
      this.reset();
      if (!measured.leads()) return;
      // Absent is unknown; an old value would be wrong.
      const open = await measured.countOpen().catch(() => ({}));
      for (const [state, count] of Object.entries(open)) this.set({ state }, count);
    },
  });
  new Gauge({
    name: "devmesh_firmware_bytes",
    help: "Bytes of all firmware; of the replica that sends.",
    registers: [registry],
    async collect() {
      this.reset();
      const bytes = measured.leads() ? await measured.countFirmwareBytes().catch(() => null) : null;
      if (bytes !== null) this.set(bytes);
    },
  });
  return {
    ended: counter("devmesh_jobs_ended_total", "Executions that ended.", "kind", "state", "reason"),
    paused: counter("devmesh_jobs_paused_total", "Jobs that paused by themselves.", "why"),
    /** By the outcome of `attemptCall`, or `undelivered` and `unknown` where the bridge did not answer. */
    sends: counter("devmesh_jobs_sends_total", "Attempts.", "outcome"),
    wakeSeconds: histogram(
      "devmesh_jobs_wake_seconds",
      "Time from a device's connecting to its first attempt.",
    ),
  };
}

import { Gauge, type Registry } from "prom-client";
import type { PresenceWatch } from "./presence-watch.ts";

/**
 * Registers what presence knows, asked at each scrape. Each replica knows of all devices: take the largest of their
 * values, not the sum.
 */
export function registerPresenceMetrics(
  registry: Registry,
  presence: Pick<PresenceWatch, "devicesOnline" | "connections">,
): void {
  const registers = [registry];
  new Gauge({
    name: "devmesh_devices_online",
    help: "Devices with at least one open MQTT connection.",
    registers,
    collect() {
      this.set(presence.devicesOnline);
    },
  });
  new Gauge({
    name: "devmesh_devices_mqtt_connections",
    help: "Open MQTT connections of all devices.",
    registers,
    collect() {
      this.set(presence.connections);
    },
  });
}

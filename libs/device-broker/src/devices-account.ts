import type { Bus } from "@devmesh/service-kit/bus";
import type { ConnectAs } from "@devmesh/service-kit/process/run-service";
import { z } from "zod";

/** The broker's user of a service in account DEVICES. */
export function devicesUser(service: string): string {
  return `${service}.devices`;
}

/** Variables of a service with a right in account DEVICES. */
export const DevicesAccountEnv = z.object({
  /** Password of the user `<service>.devices`. */
  NATS_DEVICES_PASSWORD: z.string().min(1).optional(),
});

/** What a service is started with, as far as its connection to account DEVICES follows from it. */
export interface DevicesAccountOptions {
  readonly env: z.output<typeof DevicesAccountEnv> & { readonly NATS_USER?: string | undefined };
  readonly bus: Pick<Bus, "name">;
  readonly connectAs: ConnectAs;
}

/** A connection of a service to account DEVICES; readiness names it so. */
export function connectDevicesBus(
  { env, bus, connectAs }: DevicesAccountOptions,
  check = "devices bus",
): Promise<Bus> {
  return connectAs(check, devicesUser(env.NATS_USER ?? bus.name), env.NATS_DEVICES_PASSWORD);
}

import { mesh } from "@devmesh/contracts/mesh";
import { runService } from "@devmesh/service-kit/process/run-service";
import { DevicesEnv } from "./env.ts";
import { startDevices } from "./start-devices.ts";

await runService({ name: "devices", declaration: mesh.devices, env: DevicesEnv, start: startDevices });

import { mesh } from "@devmesh/contracts/mesh";
import { runService } from "@devmesh/service-kit/process/run-service";
import { AlertsEnv } from "./env.ts";
import { startAlerts } from "./start-alerts.ts";

await runService({ name: "alerts", declaration: mesh.alerts, env: AlertsEnv, start: startAlerts });

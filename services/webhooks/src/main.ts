import { mesh } from "@devmesh/contracts/mesh";
import { runService } from "@devmesh/service-kit/process/run-service";
import { WebhooksEnv } from "./env.ts";
import { startWebhooks } from "./start-webhooks.ts";

await runService({ name: "webhooks", declaration: mesh.webhooks, env: WebhooksEnv, start: startWebhooks });

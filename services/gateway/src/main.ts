import { mesh } from "@devmesh/contracts/mesh";
import { runService } from "@devmesh/service-kit/process/run-service";
import { GatewayEnv } from "./env.ts";
import { startGateway } from "./gateway.ts";

await runService({
  name: "gateway",
  declaration: mesh.gateway,
  env: GatewayEnv,
  readyWithoutBroker: true,
  async start(parts) {
    const gateway = await startGateway(parts);
    return { implementation: null, elsewhere: [gateway.answered], stop: gateway.stop };
  },
});

import { mesh } from "@devmesh/contracts/mesh";
import { runService } from "@devmesh/service-kit/process/run-service";
import { RpcBridgeEnv } from "./env.ts";
import { startRpcBridge } from "./start-rpc-bridge.ts";

await runService({
  name: "rpc-bridge",
  declaration: mesh["rpc-bridge"],
  env: RpcBridgeEnv,
  start: startRpcBridge,
});

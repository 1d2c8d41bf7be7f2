import { mesh } from "@devmesh/contracts/mesh";
import { runService } from "@devmesh/service-kit/process/run-service";
import { KeysEnv } from "./env.ts";
import { startKeys } from "./start-keys.ts";

await runService({ name: "keys", declaration: mesh.keys, env: KeysEnv, start: startKeys });

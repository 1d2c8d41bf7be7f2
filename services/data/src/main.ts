import { mesh } from "@devmesh/contracts/mesh";
import { runService } from "@devmesh/service-kit/process/run-service";
import { DataEnv } from "./env.ts";
import { startData } from "./start-data.ts";

await runService({ name: "data", declaration: mesh.data, env: DataEnv, start: startData });

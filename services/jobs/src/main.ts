import { mesh } from "@devmesh/contracts/mesh";
import { runService } from "@devmesh/service-kit/process/run-service";
import { JobsEnv } from "./env.ts";
import { startJobs } from "./start-jobs.ts";

await runService({ name: "jobs", declaration: mesh.jobs, env: JobsEnv, start: startJobs });

import { mesh } from "@devmesh/contracts/mesh";
import { runService } from "@devmesh/service-kit/process/run-service";
import { MailerEnv } from "./env.ts";
import { startMailer } from "./start-mailer.ts";

await runService({ name: "mailer", declaration: mesh.mailer, env: MailerEnv, start: startMailer });

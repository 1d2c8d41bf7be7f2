import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { repository } from "@devmesh/supervisor/mesh/service-process";
import { z } from "zod";

/** The program of a start command. */
const schemaFile = /^services\/(?<folder>.+)\/main\.ts$/;

/** The environment schema of a program, such as `services/keys/src/main.ts`. */
export async function environmentSchema(program: string): Promise<z.ZodObject> {
  const folder = schemaFile.exec(program)?.groups?.folder;
  if (folder === undefined) throw new Error(`${program} is no program of a service`);
  const file = join(repository, "services", folder, "env.ts");
  const module: Record<string, unknown> = await import(pathToFileURL(file).href);
  const schema = Object.values(module).find((exported) => exported instanceof z.ZodObject);
  if (schema === undefined) throw new Error(`${program} declares no environment`);
  return schema;
}

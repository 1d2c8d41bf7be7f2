import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { z } from "zod";
import { repository } from "./manifest.ts";

/** Where the schema stands of the environment that a start command's program reads. */
const schemaFile = /^services\/(?<folder>.+)\/main\.ts$/;

/** The schema of the environment of a program, by its path such as `services/keys/src/main.ts`. */
export async function environmentSchema(program: string): Promise<z.ZodObject> {
  const folder = schemaFile.exec(program)?.groups?.folder;
  if (folder === undefined) throw new Error(`${program} is no program of a service`);
  const file = join(repository, "services", folder, "env.ts");
  const module: Record<string, unknown> = await import(pathToFileURL(file).href);
  const schema = Object.values(module).find((exported) => exported instanceof z.ZodObject);
  if (schema === undefined) throw new Error(`${program} declares no environment`);
  return schema;
}

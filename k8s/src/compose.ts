import { execFile } from "node:child_process";
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { z } from "zod";
import { repository } from "./manifest.ts";

/** A map, which comes as lines of `NAME=value` where files were merged. */
const Environment = z.union([
  z.record(z.string(), z.string().nullable()),
  z.array(z.string()).transform((lines) => {
    return Object.fromEntries(lines.map((line) => [line.replace(/=.*$/s, ""), line.replace(/^[^=]*=/, "")]));
  }),
]);

/** A service of a compose project, as far as the checks look at it. */
const ComposeService = z.object({
  image: z.string(),
  read_only: z.boolean().default(false),
  cap_drop: z.array(z.string()).default([]),
  security_opt: z.array(z.string()).default([]),
  mem_limit: z.union([z.string(), z.number()]).optional(),
  restart: z.string().optional(),
  user: z.string().optional(),
  privileged: z.boolean().default(false),
  network_mode: z.string().optional(),
  networks: z.record(z.string(), z.unknown()).default({}),
  environment: Environment.default({}),
  healthcheck: z.looseObject({ test: z.array(z.string()) }).optional(),
  depends_on: z.record(z.string(), z.object({ condition: z.string() })).default({}),
  ports: z.array(z.looseObject({ target: z.number(), published: z.string() })).default([]),
  volumes: z.array(z.looseObject({ type: z.string(), source: z.string(), target: z.string() })).default([]),
});
export type ComposeService = z.infer<typeof ComposeService>;

const Project = z.object({ services: z.record(z.string(), ComposeService) });

/** Names of the variables that compose files ask for and have no default of. */
export async function requiredVariables(files: readonly string[]): Promise<readonly string[]> {
  const texts = await Promise.all(files.map((file) => readFile(join(repository, file), "utf8")));
  const names = texts.flatMap((text) => [...text.matchAll(/\$\{(\w+):\?\}/g)].map(([, name = ""]) => name));
  return [...new Set(names)].sort();
}

/**
 * The services of compose files read one over the other, as `docker compose config` reads them, with these variables.
 * `folder` takes copies of the files. Throws with the words of the Compose Specification's own reader when they are
 * wrong.
 */
export async function readCompose(
  reader: string,
  files: readonly string[],
  variables: Readonly<Record<string, string>>,
  folder: string,
): Promise<Readonly<Record<string, ComposeService>>> {
  await mkdir(folder, { recursive: true });
  for (const file of files) {
    const text = await readFile(join(repository, file), "utf8");
    await writeFile(join(folder, file), interpolated(text, variables));
  }
  const { stdout } = await promisify(execFile)(reader, ["--format", "json", ...files], { cwd: folder });
  return Project.parse(JSON.parse(stdout)).services;
}

/** `${NAME:?}` and `${NAME:-default}`: the reader, as a program, takes no variables. */
function interpolated(text: string, variables: Readonly<Record<string, string>>): string {
  return text.replaceAll(/\$\{(\w+):([?-])([^}]*)\}/g, (_, name: string, operator: string, rest: string) => {
    const value = variables[name];
    if (value !== undefined && value !== "") return value;
    if (operator === "-") return rest;
    throw new Error(`the variable ${name} is not set`);
  });
}

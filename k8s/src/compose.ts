import { execFile } from "node:child_process";
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { repository } from "@devmesh/supervisor/mesh/service-process";
import { z } from "zod";

/** A map, or lines of `NAME=value`, or `NAME` without a value, where files were merged. */
const Environment = z.union([
  z.record(z.string(), z.string().nullable()),
  z.array(z.string()).transform((lines) => {
    return Object.fromEntries(
      lines.map((line) => {
        const [name = ""] = line.split("=", 1);
        return [name, line === name ? null : line.slice(name.length + 1)];
      }),
    );
  }),
]);

/** The checked part of a compose service. */
const ComposeService = z.object({
  image: z.string(),
  read_only: z.boolean().default(false),
  cap_drop: z.array(z.string()).default([]),
  security_opt: z.array(z.string()).default([]),
  mem_limit: z.union([z.string(), z.number()]).optional(),
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

/** Variables of compose files without a default. */
export async function requiredVariables(files: readonly string[]): Promise<readonly string[]> {
  const texts = await Promise.all(files.map((file) => readFile(join(repository, file), "utf8")));
  const names = texts.flatMap((text) => [...text.matchAll(/\$\{(\w+):\?\}/g)].map(([, name = ""]) => name));
  return [...new Set(names)].sort();
}

/**
 * The services of merged compose files, as `docker compose config` reads them. Copies of the files go to `folder`.
 * Throws the message of the Compose Specification's reader.
 */
export async function readCompose(
  reader: string,
  files: readonly string[],
  variables: NodeJS.Dict<string>,
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

/** Replaces `${NAME:?}` and `${NAME:-default}`, inner ones first. Throws for a variable that must be set. */
export function interpolated(text: string, variables: NodeJS.Dict<string>): string {
  const replaced = text.replaceAll(
    /\$\{(\w+):([?-])([^${}]*)\}/g,
    (_, name: string, operator: string, rest: string) => {
      const value = variables[name];
      if (value !== undefined && value !== "") return value;
      if (operator === "-") return rest;
      throw new Error(`the variable ${name} is not set`);
    },
  );
  return replaced === text ? text : interpolated(replaced, variables);
}

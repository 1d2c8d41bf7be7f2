import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { ServiceEnv } from "@devmesh/service-kit/process/env";
import { describe, expect, test } from "@jest/globals";
import { z } from "zod";

const servicesFolder = join(import.meta.dirname, "../../../services");

/** Default of each variable as a README's table `variable | default | meaning` says it. */
function documentedDefaults(readme: string): Map<string, string> {
  const table = readme.slice(readme.indexOf("## Environment"));
  const rows = table.matchAll(/^\| (`[A-Z][^|]*?) +\| ([^|]*?) +\|/gm);
  return new Map(
    [...rows].flatMap(([, names = "", defaults = ""]) => {
      const values = defaults.split(", ");
      return names.split(", ").map((name, at) => [bare(name), bare(values[at] ?? "")] as const);
    }),
  );
}

function bare(cell: string): string {
  return cell.replaceAll("`", "").trim();
}

/** The schema of a service's environment, without what every service reads. */
async function ownVariables(service: string): Promise<Map<string, z.ZodType>> {
  const module: Record<string, unknown> = await import(
    pathToFileURL(join(servicesFolder, service, "src/env.ts")).href
  );
  const schema = Object.values(module).find((exported) => exported instanceof z.ZodObject);
  if (schema === undefined) throw new Error(`${service} declares no environment`);
  const shape = Object.entries(schema.shape as Record<string, z.ZodType>);
  return new Map(
    shape.filter(([name, type]) => (ServiceEnv.shape as Record<string, z.ZodType>)[name] !== type),
  );
}

describe("the README of", () => {
  test.each(readdirSync(servicesFolder))(
    "%s names each variable it reads, with its default",
    async (service) => {
      const documented = documentedDefaults(readFileSync(join(servicesFolder, service, "README.md"), "utf8"));
      const declared = await ownVariables(service);
      expect([...documented.keys()].sort()).toEqual([...declared.keys()].sort());
      for (const [name, type] of declared) {
        const missing = type.safeParse(undefined);
        const said = documented.get(name);
        if (!missing.success) expect({ name, said }).toEqual({ name, said: "required" });
        else if (said === "none") expect([undefined, []]).toContainEqual(missing.data);
        else expect({ name, value: type.parse(said) }).toEqual({ name, value: missing.data });
      }
    },
  );
});

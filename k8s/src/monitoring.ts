import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { repository } from "@devmesh/supervisor/mesh/service-process";
import { parse } from "yaml";
import { z } from "zod";

/** The folder of rules and dashboards. */
export const monitoringFolder = join(repository, "monitoring");

const Rule = z.object({
  record: z.string().optional(),
  alert: z.string().optional(),
  expr: z.string(),
  annotations: z.looseObject({ runbook_url: z.string() }).optional(),
});

const RuleFile = z.object({ groups: z.array(z.object({ rules: z.array(Rule) })) });

/** The rules of `monitoring/rules.yaml`. */
export async function readRules(): Promise<readonly z.infer<typeof Rule>[]> {
  const file = RuleFile.parse(parse(await readFile(join(monitoringFolder, "rules.yaml"), "utf8")));
  return file.groups.flatMap(({ rules }) => rules);
}

const Variable = z.object({
  name: z.string(),
  type: z.string(),
  query: z.union([z.string(), z.object({ query: z.string() })]),
});

const DataSource = z.object({ type: z.string(), uid: z.string() });

const Panel = z.object({
  id: z.int(),
  type: z.string(),
  title: z.string(),
  datasource: DataSource.optional(),
  targets: z.array(z.object({ expr: z.string(), datasource: DataSource })).default([]),
});

const Dashboard = z.object({
  uid: z.string(),
  title: z.string(),
  templating: z.object({ list: z.array(Variable) }),
  panels: z.array(Panel),
});

/** The checked part of a dashboard of Grafana. */
export type Dashboard = z.infer<typeof Dashboard> & { readonly file: string };

/** All dashboards, by file name. */
export async function readDashboards(): Promise<readonly Dashboard[]> {
  const folder = join(monitoringFolder, "dashboards");
  const files = (await readdir(folder)).sort();
  return await Promise.all(
    files.map(async (file) => ({
      file,
      ...Dashboard.parse(JSON.parse(await readFile(join(folder, file), "utf8"))),
    })),
  );
}

/** A query with a value for each variable of Grafana. */
export function withoutVariables(query: string): string {
  return query.replaceAll("$__rate_interval", "5m").replaceAll(/\$(\w+)/g, ".*");
}

/** What a query of Prometheus names. */
export interface QueryNames {
  readonly metrics: ReadonlySet<string>;
  /** Labels that series are selected by, with each value that is written out. */
  readonly selected: readonly {
    readonly metric: string;
    readonly label: string;
    readonly values: string[];
  }[];
  /** Labels that series are grouped or matched by. */
  readonly grouped: readonly string[];
}

/** Reads the names out of a query. It need not be a valid one. */
export function namesIn(query: string): QueryNames {
  const selected = [...query.matchAll(/([a-z_:0-9]+)\{([^}]*)\}/g)].flatMap(
    ([, metric = "", matchers = ""]) =>
      [...matchers.matchAll(/(\w+)\s*(?:=~|!~|!=|=)\s*"([^"]*)"/g)].map(([, label = "", value = ""]) => ({
        metric,
        label,
        values: value.split("|").filter((one) => /^[\w -]+$/.test(one)),
      })),
  );
  const bare = query.replaceAll(/\{[^}]*\}|"[^"]*"|\[[^\]]*\]/g, "");
  const lists = [...bare.matchAll(/\b(?:by|without|on|ignoring|group_left)\s*\(([^)]*)\)/g)];
  const metrics = bare.match(/\b(?:devmesh|nodejs|process)[_:][a-z_:0-9]+/g) ?? [];
  return {
    metrics: new Set(metrics),
    selected,
    grouped: lists.flatMap(([, labels = ""]) => labels.split(",").map((label) => label.trim())),
  };
}

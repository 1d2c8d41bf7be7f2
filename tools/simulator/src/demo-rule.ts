import type { MeshAccess } from "@devmesh/supervisor/mesh/mesh-file";
import { z } from "zod";
import { meshApi } from "./mesh-api.ts";

const name = "Demonstration: low pressure";
const Listed = z.array(z.object({ name: z.string() }));
const Created = z.object({ id: z.string() });
const MailDelivery = z.object({ mail_delivery: z.string().optional() });

/**
 * Creates a rule that fires for the simulated pump until somebody asks it for 4 bar, unless there is one of the name.
 * Its alert is mailed only where mail is written into files.
 */
export async function createDemoRule(mesh: MeshAccess): Promise<void> {
  const send = meshApi(mesh);
  async function succeed<T>(schema: z.ZodType<T>, path: string, body?: unknown): Promise<T> {
    const answer = await send(path, body);
    if (!answer.ok) throw new Error(`${path} of the demonstration: HTTP status ${answer.status}`);
    return schema.parse(await answer.json());
  }

  if ((await succeed(Listed, "rules")).some((rule) => rule.name === name)) return;
  const { mail_delivery } = await succeed(MailDelivery, "mesh");
  const channel = { kind: "mail", name: "Demonstration", to: ["demo@example.com"] };
  const notify = mail_delivery === "files" ? [(await succeed(Created, "channels", channel)).id] : [];
  await succeed(Created, "rules", {
    name,
    where: { labels: { all: ["demo", "pump"] } },
    when: { kind: "shadow", pointer: "/state/reported/app/target_bar", is: "<", than: 4 },
    notify,
    note: "Ask the pump for another pressure: desired state app.target_bar",
  });
}

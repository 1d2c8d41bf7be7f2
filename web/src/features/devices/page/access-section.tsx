import { Acl, FunctionName, ShadowPointer } from "@devmesh/contracts/model/acl";
import type { Device } from "@devmesh/contracts/model/device";
import { isJsonObject, JsonObject } from "@devmesh/contracts/model/json";
import { cutToPointers, pointerTree } from "@devmesh/contracts/model/pointer-tree";
import { Group, SimpleGrid, Stack, TagsInput, Text } from "@mantine/core";
import type { ZodType } from "zod";
import { CodeBlock } from "../../../components/code-block.tsx";
import { issueOf } from "../../../components/issue-of.ts";
import { JsonEditor } from "../../../components/json-editor.tsx";
import { describeFault, parseJson } from "../../../components/parse-json.ts";
import type { SectionProps } from "./section.ts";
import { useDeviceDraft } from "./use-device-draft.tsx";

/** The ACL in the form: its queries as text. */
type AclValues = Pick<Acl, "read" | "write" | "rpc"> & { queries: string };

/** Edits the permissions of the device's public key, and shows what the key can read. */
export function AccessSection({ device }: SectionProps) {
  const { form, isDirty, buttons, alerts } = useDeviceDraft<Acl, AclValues>({
    device,
    what: "the ACL",
    read: ({ acl }) => acl,
    format: valuesOf,
    parse: aclIn,
    validate: {
      read: (read) => firstWrong(ShadowPointer, read),
      write: (write) => firstWrong(ShadowPointer, write),
      rpc: (rpc) => firstWrong(FunctionName, rpc),
      queries: wrongQueries,
    },
    patch: (_from, acl) => ({ acl }),
  });
  const readable = form.values.read.filter((pointer) => ShadowPointer.safeParse(pointer).success);

  return (
    <Stack>
      {alerts}
      <SimpleGrid cols={{ base: 1, md: 2 }}>
        <Stack>
          <TagsInput
            label="Reads"
            description="JSON pointers into the shadow; each includes everything below it."
            {...form.getInputProps("read")}
          />
          <TagsInput
            label="Changes"
            description="JSON pointers, as above."
            {...form.getInputProps("write")}
          />
          <TagsInput label="Calls" description="Functions of the device." {...form.getInputProps("rpc")} />
          <JsonEditor
            label="Queries"
            description={'By name, as in {"day": {"topic": "temp/#", "since": "PT24H", "limit": 100}}.'}
            {...form.getInputProps("queries")}
          />
          <Group gap="xs">{buttons}</Group>
        </Stack>
        <Stack gap={4}>
          <Text size="sm" fw={500}>
            What the public key sees{isDirty ? " once this is saved" : ""}
          </Text>
          <Text size="xs" c="dimmed">
            The answer of GET /api/v2/m/device, with the shadow as it is now.
          </Text>
          <CodeBlock label="What the public key sees" maxHeight={520}>
            {JSON.stringify(visibleDevice(device, { read: readable }), null, 2)}
          </CodeBlock>
        </Stack>
      </SimpleGrid>
    </Stack>
  );
}

function valuesOf({ read, write, rpc, queries }: Acl): AclValues {
  return { read, write, rpc, queries: JSON.stringify(queries, null, 2) };
}

function aclIn({ queries, ...lists }: AclValues): Acl | null {
  const parsed = parseJson(queries);
  if (parsed.kind === "fault") return null;
  return Acl.safeParse({ ...lists, queries: parsed.value }).data ?? null;
}

function wrongQueries(text: string): string | null {
  const parsed = parseJson(text);
  if (parsed.kind === "fault") return describeFault(parsed.fault);
  const issue = Acl.shape.queries.safeParse(parsed.value).error?.issues[0];
  return issue === undefined ? null : `${issue.path.join(".")} ${issue.message}`.trim();
}

/** The error in the first invalid value; null if all are valid. */
function firstWrong(schema: ZodType<string>, values: readonly string[]): string | null {
  for (const value of values) {
    const wrong = issueOf(schema, value);
    if (wrong !== null) return `${value} ${wrong}`;
  }
  return null;
}

/**
 * What `GET /m/device` answers the holder of the device's public key under an ACL (api.md, Device public key and the
 * ACL).
 */
export function visibleDevice(device: Device, { read }: Pick<Acl, "read">): JsonObject {
  const cut = cutToPointers(JsonObject.parse(device.shadow), pointerTree(read));
  const shadow = isJsonObject(cut) ? cut : {};
  return { id: device.id, shadow: { ...shadow, state: shadow.state ?? {} } };
}

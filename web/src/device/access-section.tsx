import { Acl, FunctionName, ShadowPointer } from "@devmesh/contracts/model/acl";
import { JsonValue } from "@devmesh/contracts/model/json";
import { Button, Code, Group, SimpleGrid, Stack, TagsInput, Text } from "@mantine/core";
import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useMemo, useState } from "react";
import type { ZodType } from "zod";
import { useApi } from "../api/api-context.tsx";
import { queryKeys } from "../api/query-keys.ts";
import { Failure } from "../elements/failure.tsx";
import { JsonEditor } from "../elements/json-editor.tsx";
import { parseJson } from "../elements/parse-json.ts";
import { ChangeConflict } from "./change-conflict.tsx";
import { changeDevice } from "./change-device.ts";
import { equalJson } from "./equal-json.ts";
import { leafChanges } from "./leaf-changes.ts";
import type { SectionProps } from "./section.ts";
import { visibleDevice } from "./visible-parts.ts";

/** The ACL as it is typed: its queries as text. */
interface Draft extends Pick<Acl, "read" | "write" | "rpc"> {
  readonly queries: string;
}

/** What the holder of the device's public key may do, to be changed, beside what that key then sees. */
export function AccessSection({ device }: SectionProps) {
  const api = useApi();
  const queries = useQueryClient();
  const [base, setBase] = useState<Acl>(device.acl);
  const [draft, setDraft] = useState(() => draftOf(device.acl));
  const parsedQueries = useMemo(() => parseJson(draft.queries), [draft.queries]);
  const checked = useMemo(
    () =>
      Acl.safeParse({
        ...draft,
        queries: parsedQueries.kind === "value" ? parsedQueries.value : {},
      }),
    [draft, parsedQueries],
  );
  const acl = parsedQueries.kind === "value" && checked.success ? checked.data : null;
  const dirty = acl === null || !sameAcl(acl, base);
  const movedOn = !sameAcl(device.acl, base);
  const agreed = acl !== null && sameAcl(acl, device.acl);

  const begin = (from: Acl) => {
    setBase(from);
    setDraft(draftOf(from));
  };
  // What nobody has edited follows what others save; the stream may also tell what is saved here before the answer does.
  if (movedOn && (!dirty || agreed)) begin(device.acl);

  const saving = useMutation({
    mutationFn: ({ from, to }: { readonly from: Acl; readonly to: Acl }) =>
      changeDevice(api, {
        id: device.id,
        patch: { acl: to },
        isAsRead: (read) => sameAcl(read.acl, from),
      }),
    onSuccess: ({ kind, device: changed }) => {
      if (kind === "saved") begin(changed.acl);
      queries.setQueryData(queryKeys.device(device.id), changed);
    },
  });
  const save = (from: Acl) => acl !== null && saving.mutate({ from, to: acl });
  const wrongQuery = checked.error?.issues.find(({ path }) => path[0] === "queries");

  const readable = draft.read.filter((pointer) => ShadowPointer.safeParse(pointer).success);

  return (
    <Stack>
      {movedOn && dirty && (
        <ChangeConflict
          what="the ACL"
          changes={acl === null ? null : leafChanges(jsonOf(base), jsonOf(device.acl), jsonOf(acl))}
          saving={saving.isPending}
          onTakeTheirs={() => begin(device.acl)}
          onOverwrite={acl === null ? null : () => save(device.acl)}
        />
      )}
      {saving.error !== null && <Failure error={saving.error} title="The ACL was not saved" />}
      <SimpleGrid cols={{ base: 1, md: 2 }}>
        <Stack>
          <TagsInput
            label="Reads"
            description="JSON pointers into the shadow; each covers what is below it."
            value={draft.read}
            onChange={(read) => setDraft({ ...draft, read })}
            error={firstWrong(ShadowPointer, draft.read)}
            acceptValueOnBlur
          />
          <TagsInput
            label="Changes"
            description="JSON pointers, as above."
            value={draft.write}
            onChange={(write) => setDraft({ ...draft, write })}
            error={firstWrong(ShadowPointer, draft.write)}
            acceptValueOnBlur
          />
          <TagsInput
            label="Calls"
            description="Functions of the device."
            value={draft.rpc}
            onChange={(rpc) => setDraft({ ...draft, rpc })}
            error={firstWrong(FunctionName, draft.rpc)}
            acceptValueOnBlur
          />
          <JsonEditor
            label="Queries"
            description={'By name, as in {"day": {"topic": "temp/#", "since": "PT24H", "limit": 100}}.'}
            text={draft.queries}
            parsed={parsedQueries}
            wrong={wrongQuery ? `${wrongQuery.path.slice(1).join(".")} ${wrongQuery.message}`.trim() : null}
            onChange={(text) => setDraft({ ...draft, queries: text })}
          />
          <Group gap="xs">
            <Button
              disabled={!dirty || acl === null || movedOn}
              loading={saving.isPending}
              onClick={() => save(base)}
            >
              Save
            </Button>
            <Button variant="default" disabled={!dirty} onClick={() => begin(device.acl)}>
              Discard
            </Button>
          </Group>
        </Stack>
        <Stack gap={4}>
          <Text size="sm" fw={500}>
            What the public key sees{dirty ? " once this is saved" : ""}
          </Text>
          <Text size="xs" c="dimmed">
            The answer of GET /api/v2/m/device, with the shadow as it is now.
          </Text>
          <Code
            block
            tabIndex={0}
            role="region"
            aria-label="What the public key sees"
            mah={520}
            style={{ overflow: "auto" }}
          >
            {JSON.stringify(visibleDevice(device, { read: readable }), null, 2)}
          </Code>
        </Stack>
      </SimpleGrid>
    </Stack>
  );
}

function draftOf({ read, write, rpc, queries }: Acl): Draft {
  return { read, write, rpc, queries: JSON.stringify(queries, null, 2) };
}

function jsonOf(acl: Acl) {
  return JsonValue.parse(acl);
}

function sameAcl(one: Acl, other: Acl): boolean {
  return equalJson(jsonOf(one), jsonOf(other));
}

/** What is wrong with the first of the values that is; null when all are right. */
function firstWrong(schema: ZodType<string>, values: readonly string[]): string | null {
  for (const value of values) {
    const wrong = schema.safeParse(value).error?.issues[0]?.message;
    if (wrong !== undefined) return `${value} ${wrong}`;
  }
  return null;
}

import { labelsOf } from "@devmesh/contracts/model/labels";
import { Anchor, Button, Group, SimpleGrid, Stack, TagsInput, TextInput } from "@mantine/core";
import { useForm } from "@mantine/form";
import { useDisclosure } from "@mantine/hooks";
import { useMutation, useQueryClient } from "@tanstack/react-query";
import { Trash2 } from "lucide-react";
import { useEffect } from "react";
import { Link, useLocation } from "wouter";
import { useApi } from "../../../api/api-context.tsx";
import { queryKeys } from "../../../api/query-keys.ts";
import { Card } from "../../../components/card.tsx";
import { Failure } from "../../../components/failure.tsx";
import { RelativeTime } from "../../../components/relative-time.tsx";
import { showToast } from "../../../components/toast.tsx";
import { DeleteDevices } from "../bulk/delete-devices.tsx";
import { rowOf } from "../shared/device-row.ts";
import { labelDevice } from "../shared/patch-device.ts";
import { ConnectionFacts } from "./diagnostics.tsx";
import { Fact } from "./fact.tsx";
import type { SectionProps } from "./section.ts";

/** Properties and state of a device; its name and labels can be edited. */
export function OverviewSection({ device }: SectionProps) {
  const [, navigate] = useLocation();
  const [deleting, deletion] = useDisclosure(false);
  const { firmware } = rowOf(device);
  return (
    <Stack>
      <Card title="Facts">
        <SimpleGrid cols={{ base: 1, xs: 2, lg: 3 }} component="dl" m={0}>
          <Fact term="Last seen">
            {device.online ? "online now" : <RelativeTime at={device.last_seen} />}
            {device.last_seen === null && (
              <>
                {" · "}
                <Anchor component={Link} href={`/devices/${device.id}/credentials`} underline="always">
                  Connect it
                </Anchor>
              </>
            )}
          </Fact>
          <ConnectionFacts id={device.id} />
          <Fact term="Firmware version">{firmware ?? "not reported in ota.fw_version"}</Fact>
          <Fact term="Shadow">
            version {device.shadow.version},{" "}
            {device.shadow.state.delta === undefined ? "in sync" : "not in sync"}
          </Fact>
          <Fact term="Shadow changed">
            <RelativeTime at={new Date(device.shadow.timestamp).toISOString()} />
          </Fact>
          <Fact term="Created">
            <RelativeTime at={device.created_at} />
          </Fact>
        </SimpleGrid>
      </Card>
      <Card title="Name and labels">
        <NameForm device={device} />
        <LabelsForm device={device} />
      </Card>
      <Group>
        <Button variant="default" leftSection={<Trash2 size={16} />} onClick={deletion.open}>
          Delete the device
        </Button>
      </Group>
      {deleting && (
        <DeleteDevices ids={[device.id]} onClose={deletion.close} onStarted={() => navigate("/devices")} />
      )}
    </Stack>
  );
}

function NameForm({ device }: SectionProps) {
  const api = useApi();
  const queries = useQueryClient();
  const saved = device.name ?? "";
  const form = useForm({ initialValues: { name: saved } });
  const { name } = form.values;
  // Without edits, the field follows the device.
  // biome-ignore lint/correctness/useExhaustiveDependencies: the form has a new identity each time
  useEffect(() => {
    if (!form.isDirty()) form.setValues({ name: saved });
    form.resetDirty({ name: saved });
  }, [saved]);
  const naming = useMutation({
    mutationFn: () =>
      api.call("patchDevice", { params: { id: device.id }, body: { name: name === "" ? null : name } }),
    onSuccess: (changed) => {
      queries.setQueryData(queryKeys.device(device.id), changed);
      showToast({ title: "The name is saved" });
    },
  });
  return (
    <form onSubmit={form.onSubmit(() => naming.mutate())}>
      <Group align="end" gap="xs">
        <TextInput
          label="Name"
          maxLength={256}
          w={{ base: "100%", xs: 320 }}
          {...form.getInputProps("name")}
        />
        <Button type="submit" variant="default" loading={naming.isPending} disabled={name === saved}>
          Save the name
        </Button>
      </Group>
      <Failure error={naming.error} title="The name was not changed" />
    </form>
  );
}

function LabelsForm({ device }: SectionProps) {
  const api = useApi();
  const queries = useQueryClient();
  const current = labelsOf(device.shadow.tags);
  // Null without edits. The change is relative to `before`: labels that others set meanwhile stay.
  const form = useForm({
    initialValues: { edited: null as { readonly before: string[]; readonly labels: string[] } | null },
  });
  const { before, labels } = form.values.edited ?? { before: current, labels: current };
  const add = labels.filter((label) => !before.includes(label));
  const remove = before.filter((label) => !labels.includes(label));
  const labelling = useMutation({
    mutationFn: () => labelDevice(api, device.id, { add, remove }, AbortSignal.timeout(30_000)),
    onSuccess: async () => {
      await queries.invalidateQueries({ queryKey: queryKeys.device(device.id), exact: true });
      form.reset();
    },
  });
  return (
    <form onSubmit={form.onSubmit(() => labelling.mutate())}>
      <Group align="end" gap="xs">
        <TagsInput
          label="Labels"
          value={labels}
          onChange={(changed) => form.setFieldValue("edited", { before, labels: changed })}
          w={{ base: "100%", xs: 320 }}
        />
        <Button
          type="submit"
          variant="default"
          loading={labelling.isPending}
          disabled={add.length + remove.length === 0}
        >
          Save the labels
        </Button>
      </Group>
      <Failure error={labelling.error} title="The labels were not changed" />
    </form>
  );
}

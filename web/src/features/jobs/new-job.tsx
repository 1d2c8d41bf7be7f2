import { Job, JobTrial } from "@devmesh/contracts/model/job";
import {
  Alert,
  Button,
  Checkbox,
  Group,
  SegmentedControl,
  Stack,
  TagsInput,
  Text,
  Textarea,
  TextInput,
} from "@mantine/core";
import { useForm } from "@mantine/form";
import { useMutation } from "@tanstack/react-query";
import { Link, useLocation } from "wouter";
import { useApi } from "../../api/api-context.tsx";
import { Card } from "../../components/card.tsx";
import { Snippet } from "../../components/code-block.tsx";
import { Columns } from "../../components/columns.tsx";
import { Failure } from "../../components/failure.tsx";
import { Fold } from "../../components/fold.tsx";
import { JsonEditor } from "../../components/json-editor.tsx";
import { countText } from "../../components/number-text.ts";
import { Page } from "../../components/page.tsx";
import { useAddress } from "../../components/use-address.ts";
import { WholeNumberInput } from "../../components/whole-number-input.tsx";
import { useJobTarget } from "../devices/shared/job-target.ts";
import { useFirmware } from "../devices/shared/use-firmware.ts";
import { FirmwareFields } from "./firmware-fields.tsx";
import { PaceFields } from "./job-pace.tsx";
import { emptyJob, readJob, type TypedJob } from "./typed-job.ts";

/** What a link to a new job says of its target. */
const defaults = { where: "", of_job: "", target: "where", kind: "rpc", firmware: "" };

const kinds = [
  { value: "rpc", label: "Call" },
  { value: "shadow", label: "Set desired" },
  { value: "labels", label: "Label" },
  { value: "firmware", label: "Update firmware" },
] as const;

/** A job is typed, tried, and started once the devices that it would have were shown. */
export function NewJobPage() {
  const api = useApi();
  const [, navigate] = useLocation();
  const [wanted] = useAddress(defaults);
  const [selected] = useJobTarget();
  const form = useForm<TypedJob>({
    initialValues: {
      ...emptyJob,
      kind:
        wanted.firmware !== ""
          ? "firmware"
          : (kinds.find(({ value }) => value === wanted.kind)?.value ?? "rpc"),
      firmware_id: wanted.firmware,
      target: wanted.of_job !== "" ? "of_job" : wanted.target === "ids" ? "ids" : "where",
      where: wanted.where,
      ids: selected.join("\n"),
      of_job: wanted.of_job,
    },
  });
  const { values } = form;
  const { data: files } = useFirmware({ enabled: values.kind === "firmware" });
  const chosen = files?.find(({ id }) => id === values.firmware_id);
  const usualName = chosen === undefined ? "" : `${chosen.name} to ${chosen.version}`;
  const { body, faults } = readJob({ ...values, name: values.name || usualName });
  const json = body === null ? "" : JSON.stringify(body);
  const trying = useMutation({
    mutationFn: async (tried: NonNullable<typeof body>) => ({
      json: JSON.stringify(tried),
      trial: JobTrial.parse(await api.call("createJob", { query: { dry_run: true }, body: tried })),
    }),
  });
  const starting = useMutation({
    mutationFn: async (started: NonNullable<typeof body>) =>
      Job.parse(await api.call("createJob", { body: started })),
    onSuccess: ({ id }) => navigate(`/jobs/${id}`),
  });
  // Start waits for a dry run of what is in the form.
  const trial = trying.data?.json === json ? trying.data.trial : null;
  /** Faults of what was typed; those of empty fields only show once the form is tried. */
  const faultOf = (name: keyof TypedJob) => (values[name].toString() !== "" ? faults[name] : undefined);
  const field = (name: keyof TypedJob) => ({ ...form.getInputProps(name), error: faultOf(name) });
  return (
    <Page title="New job" above={<Link href="/jobs">Jobs</Link>}>
      <Columns>
        <div>
          <Card title="What">
            <TextInput
              label="Name"
              description="For people. Optional."
              placeholder={usualName}
              {...field("name")}
            />
            <SegmentedControl aria-label="Action" data={[...kinds]} {...form.getInputProps("kind")} />
            {values.kind === "firmware" && <FirmwareFields values={values} field={field} />}
            {values.kind === "rpc" && (
              <>
                <TextInput
                  label="Function"
                  placeholder="Sys.GetInfo"
                  autoComplete="off"
                  spellCheck={false}
                  {...field("func")}
                />
                <JsonEditor
                  label="Parameters"
                  description="A JSON object or array. Optional."
                  minRows={2}
                  {...field("params")}
                />
              </>
            )}
            {values.kind === "labels" && (
              <>
                <TagsInput label="Add" description="Press Enter after each." {...field("add")} />
                <TagsInput label="Remove" description="Press Enter after each." {...field("remove")} />
              </>
            )}
            {values.kind === "shadow" && (
              <JsonEditor
                label="Desired state"
                description="A JSON object with what is to change. Other members stay; null removes one."
                {...field("desired")}
              />
            )}
          </Card>
          <Card title="Devices">
            <SegmentedControl
              aria-label="Target"
              data={[
                { value: "where", label: "By a condition" },
                { value: "ids", label: "By id" },
                ...(wanted.of_job === "" ? [] : [{ value: "of_job", label: "What failed" }]),
              ]}
              {...form.getInputProps("target")}
            />
            {values.target === "where" && (
              <TextInput
                label="Condition"
                description="As in the list of devices; empty for all."
                placeholder="label:site-1 version:2.0.1"
                spellCheck={false}
                {...field("where")}
              />
            )}
            {values.target === "where" && (
              <Checkbox
                label="Also devices that meet it later"
                description="The job then goes on until it is cancelled."
                {...form.getInputProps("continuous", { type: "checkbox" })}
              />
            )}
            {values.target === "ids" && (
              <Textarea
                label="Ids"
                description="With blanks, commas or new lines between."
                autosize
                minRows={3}
                maxRows={8}
                spellCheck={false}
                {...field("ids")}
              />
            )}
            {values.target === "of_job" && (
              <Text size="sm">
                Those that failed or did not answer in{" "}
                <Link href={`/jobs/${values.of_job}`}>the job before</Link>.
              </Text>
            )}
          </Card>
          <Card title="Rollout">
            <TextInput
              label="Stages, in percent"
              description="The next stage begins when 90 % of the devices so far have succeeded. Optional."
              placeholder="5, 25"
              {...field("stages")}
            />
            <Checkbox
              label="Pause after each stage"
              disabled={values.stages.trim() === ""}
              {...form.getInputProps("hold", { type: "checkbox" })}
            />
            <Group gap="sm" align="start">
              <PaceFields form={{ getInputProps: field }} />
              <WholeNumberInput
                label="Pause at failures, %"
                placeholder="never"
                min={1}
                max={100}
                w={150}
                {...field("failed_percent")}
              />
            </Group>
            <Fold
              label="Retry and expiry"
              needed={["attempts", "retry_after", "expires_in"].some((name) =>
                faultOf(name as keyof TypedJob),
              )}
            >
              <Group gap="sm" align="start" grow>
                <WholeNumberInput
                  label="Attempts"
                  description={values.kind === "rpc" ? "More than one is at least once." : "For each device."}
                  placeholder={values.kind === "firmware" ? "3" : "1"}
                  min={1}
                  max={100}
                  {...field("attempts")}
                />
                <TextInput
                  label="Again after"
                  description="Such as 90 s, 5 min."
                  placeholder="1 min"
                  {...field("retry_after")}
                />
                <TextInput
                  label="Expires after"
                  description="If nothing was sent."
                  placeholder="7 d"
                  {...field("expires_in")}
                />
              </Group>
            </Fold>
          </Card>
        </div>
        <div>
          <Card title="Dry run">
            <Stack gap="sm" role="status">
              {trial === null ? (
                <Text size="sm" c="dimmed">
                  It shows which devices the job would have, and changes nothing. The job can be started once
                  it was seen.
                </Text>
              ) : (
                <Trial trial={trial} />
              )}
            </Stack>
            <Failure error={trying.error ?? starting.error} title="The job was refused" />
            <Group gap="sm" justify="flex-end">
              <Button
                variant="default"
                disabled={body === null}
                loading={trying.isPending}
                onClick={() => body !== null && trying.mutate(body)}
              >
                Dry run
              </Button>
              <Button
                disabled={trial === null || trial.devices === 0}
                loading={starting.isPending}
                onClick={() => body !== null && starting.mutate(body)}
              >
                Start the job
              </Button>
            </Group>
          </Card>
          {body !== null && (
            <Card>
              <Snippet label="As a REST request" text={curlOf(json)} />
            </Card>
          )}
        </div>
      </Columns>
    </Page>
  );
}

/** The devices that a job would have. */
function Trial({ trial }: { readonly trial: JobTrial }) {
  const { devices, online, not_found, not_eligible, sample } = trial;
  if (devices === 0) return <Alert color="yellow">No device would have it.</Alert>;
  return (
    <>
      <Text size="sm">
        <b>{devices === 1 ? "1 device" : `${countText(devices)} devices`}</b>, {countText(online)} of them
        online
        {not_found > 0 && `; ${countText(not_found)} ids are no device`}
      </Text>
      {not_eligible > 0 && (
        <Alert color="yellow">
          {not_eligible === 1 ? "1 of them does" : `${countText(not_eligible)} of them do`} not meet what the
          firmware requires: nothing is sent to {not_eligible === 1 ? "it" : "them"}, and{" "}
          {not_eligible === 1 ? "it ends" : "they end"} as failed.
        </Alert>
      )}
      <Text size="xs" ff="monospace" c="dimmed" style={{ overflowWrap: "anywhere" }}>
        {sample.join(", ")}
        {devices > sample.length && "…"}
      </Text>
    </>
  );
}

function curlOf(json: string): string {
  const quoted = json.replaceAll("'", "'\\''");
  return `curl -sS -H "Authorization: Bearer $DEVMESH_KEY" -H 'Content-Type: application/json' \\\n  -d '${quoted}' ${window.location.origin}/api/v2/jobs`;
}

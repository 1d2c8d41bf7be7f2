import { Job, JobTrial } from "@devmesh/contracts/model/job";
import {
  Alert,
  Button,
  Checkbox,
  Group,
  NumberInput,
  SegmentedControl,
  Stack,
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
import { Failure } from "../../components/failure.tsx";
import { JsonEditor } from "../../components/json-editor.tsx";
import { countText } from "../../components/number-text.ts";
import { Page } from "../../components/page.tsx";
import { useAddress } from "../../components/use-address.ts";
import { useJobTarget } from "../devices/shared/job-target.ts";
import { PaceFields } from "./job-pace.tsx";
import styles from "./jobs.module.css";
import { readJob, type TypedJob } from "./typed-job.ts";

/** What a link to a new job says of its target. */
const defaults = { where: "", of_job: "", target: "where" };

/** A job is typed, tried, and started once the devices that it would have were shown. */
export function NewJobPage() {
  const api = useApi();
  const [, navigate] = useLocation();
  const [wanted] = useAddress(defaults);
  const [selected] = useJobTarget();
  const form = useForm<TypedJob>({
    initialValues: {
      name: "",
      kind: "rpc",
      func: "",
      params: "",
      desired: "",
      target: wanted.of_job !== "" ? "of_job" : wanted.target === "ids" ? "ids" : "where",
      where: wanted.where,
      ids: selected.join("\n"),
      of_job: wanted.of_job,
      stages: "",
      hold: false,
      per_minute: "",
      concurrency: "",
      failed_percent: "",
    },
  });
  const { values } = form;
  const { body, faults } = readJob(values);
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
  const field = (name: keyof TypedJob) => ({
    ...form.getInputProps(name),
    error: values[name] !== "" ? faults[name] : undefined,
  });
  return (
    <Page title="New job" above={<Link href="/jobs">Jobs</Link>}>
      <div className={styles.columns}>
        <div className={styles.column}>
          <Card title="What">
            <TextInput label="Name" description="For people. Optional." {...field("name")} />
            <SegmentedControl
              aria-label="Action"
              data={[
                { value: "rpc", label: "Call a function" },
                { value: "shadow", label: "Set desired state" },
              ]}
              {...form.getInputProps("kind")}
            />
            {values.kind === "rpc" ? (
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
            ) : (
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
              <NumberInput
                label="Pause at failures, %"
                placeholder="never"
                min={1}
                max={100}
                allowDecimal={false}
                hideControls
                w={150}
                {...field("failed_percent")}
              />
            </Group>
          </Card>
        </div>
        <div className={styles.column}>
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
      </div>
    </Page>
  );
}

/** The devices that a job would have. */
function Trial({ trial: { devices, online, not_found, sample } }: { readonly trial: JobTrial }) {
  if (devices === 0) return <Alert color="yellow">No device would have it.</Alert>;
  return (
    <>
      <Text size="sm">
        <b>{devices === 1 ? "1 device" : `${countText(devices)} devices`}</b>, {countText(online)} of them
        online
        {not_found > 0 && `; ${countText(not_found)} ids are no device`}
      </Text>
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

import type { Job } from "@devmesh/contracts/model/job";
import { Button, Group } from "@mantine/core";
import { useForm } from "@mantine/form";
import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useApi } from "../../api/api-context.tsx";
import { queryKeys } from "../../api/query-keys.ts";
import { Card } from "../../components/card.tsx";
import { Failure } from "../../components/failure.tsx";
import { WholeNumberInput } from "../../components/whole-number-input.tsx";

/** How fast a job goes, which can be changed while it runs. */
export function JobPace({ job: { id, rollout } }: { readonly job: Job }) {
  const api = useApi();
  const queries = useQueryClient();
  const form = useForm<Pace>({
    initialValues: { per_minute: rollout.per_minute ?? "", concurrency: rollout.concurrency ?? "" },
  });
  const saving = useMutation({
    mutationFn: ({ per_minute, concurrency }: Pace) =>
      api.call("changeJob", {
        params: { id },
        body: { rollout: { per_minute: limitOf(per_minute), concurrency: limitOf(concurrency) } },
      }),
    onSuccess: (job) => {
      queries.setQueryData(queryKeys.job(id), job);
      form.resetDirty();
    },
  });
  return (
    <Card title="Pace">
      <form onSubmit={form.onSubmit((values) => saving.mutate(values))}>
        <Group align="end" gap="sm">
          <PaceFields form={form} />
          <Button type="submit" variant="default" disabled={!form.isDirty()} loading={saving.isPending}>
            Save
          </Button>
        </Group>
      </form>
      <Failure error={saving.error} title="The pace could not be changed" />
    </Card>
  );
}

/** Bounds of a rollout as they are typed; empty for none. */
export interface Pace {
  readonly per_minute: number | string;
  readonly concurrency: number | string;
}

/** A typed bound; null for none. */
export function limitOf(typed: number | string): number | null {
  return typed === "" ? null : Number(typed);
}

interface PaceFieldsProps {
  readonly form: { getInputProps(name: keyof Pace): object };
}

/** The fields of a pace. */
export function PaceFields({ form }: PaceFieldsProps) {
  return (
    <>
      <WholeNumberInput
        label="Devices a minute"
        placeholder="no limit"
        min={1}
        max={60_000}
        w={130}
        {...form.getInputProps("per_minute")}
      />
      <WholeNumberInput
        label="At a time"
        placeholder="usual"
        min={1}
        max={10_000}
        w={110}
        {...form.getInputProps("concurrency")}
      />
    </>
  );
}

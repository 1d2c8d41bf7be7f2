import { isRedactedUrl, webhookFrames, webhookLimits } from "@devmesh/contracts/model/webhook";
import { Group, TagsInput, TextInput } from "@mantine/core";
import type { ReactNode } from "react";
import { Fold } from "../../components/fold.tsx";
import { WholeNumberInput } from "../../components/whole-number-input.tsx";
import { sendsRecords, type TypedWebhook } from "./typed-webhook.ts";

/** Events that are offered; those of one function or event are typed. */
const offered = [...webhookFrames, "rpc.in.*", "rpc.out.*", "data"];

/** Properties of {@link WebhookFields}. */
interface WebhookFieldsProps {
  readonly values: TypedWebhook;
  /** The properties of a field, with its fault. */
  readonly field: (name: keyof TypedWebhook) => { readonly error?: ReactNode };
}

/** Where a webhook sends, and what. */
export function WebhookFields({ values, field }: WebhookFieldsProps) {
  const { events, devices, labels } = values;
  return (
    <>
      <TextInput
        label="URL"
        description={
          isRedactedUrl(values.url)
            ? "Its end is a secret that is not shown. Leave it as it is to keep it, or type all of another one."
            : "https, at a public address."
        }
        placeholder="https://example.com/devmesh"
        required
        maxLength={webhookLimits.url}
        inputMode="url"
        autoComplete="off"
        spellCheck={false}
        {...field("url")}
        data-autofocus
      />
      <TextInput
        label="Name"
        description="For people. Optional."
        maxLength={60}
        autoComplete="off"
        {...field("name")}
      />
      <TagsInput
        label="Events"
        description="Names of frames; rpc.out.alarm is one event of devices, data are records. Without any, only alerts arrive."
        data={offered.filter((name) => !events.includes(name))}
        maxDropdownHeight={220}
        acceptValueOnBlur
        {...field("events")}
      />
      {sendsRecords(values) && (
        <Group gap="sm" align="start" grow>
          <WholeNumberInput
            label="Records in a request"
            description="At most."
            min={1}
            max={webhookLimits.batch}
            {...field("batch")}
          />
          <WholeNumberInput
            label="Waits for more, ms"
            description="Until it is full."
            min={0}
            max={webhookLimits.batchWaitMs}
            {...field("wait_ms")}
          />
        </Group>
      )}
      <Fold
        label="Only of some devices"
        needed={
          devices.length > 0 || labels.length > 0 || Boolean(field("devices").error ?? field("labels").error)
        }
      >
        <TagsInput
          label="Devices"
          description="Ids. Press Enter after each."
          splitChars={[",", " "]}
          acceptValueOnBlur
          {...field("devices")}
        />
        <TagsInput
          label="Labels"
          description="Devices that have one of them."
          acceptValueOnBlur
          {...field("labels")}
        />
      </Fold>
    </>
  );
}

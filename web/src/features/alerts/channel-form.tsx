import { EmailAddress } from "@devmesh/contracts/model/email-address";
import { type AlertChannel, alertBounds, ChannelInput, ChannelPatch } from "@devmesh/contracts/model/rule";
import { WebhookFormat } from "@devmesh/contracts/model/webhook";
import { NativeSelect, SegmentedControl, TagsInput, Text, TextInput } from "@mantine/core";
import { useMutation, useQueryClient } from "@tanstack/react-query";
import { Link } from "wouter";
import { useApi } from "../../api/api-context.tsx";
import { queryKeys } from "../../api/query-keys.ts";
import { Failure } from "../../components/failure.tsx";
import { FormDialog } from "../../components/form-dialog.tsx";
import { readBody, useCheckedForm } from "../../components/use-checked-form.ts";
import { useWebhooks } from "../webhooks/use-webhooks.ts";
import { webhookTitle } from "../webhooks/webhook-words.ts";
import { channelKinds, formatNames } from "./channel-kinds.ts";

/** A channel as it is typed. */
interface TypedChannel {
  readonly kind: AlertChannel["kind"];
  readonly name: string;
  readonly to: string[];
  readonly webhook_id: string;
  readonly format: WebhookFormat;
}

const emptyChannel: TypedChannel = { kind: "mail", name: "", to: [], webhook_id: "", format: "cloudevents" };

/** Properties of {@link ChannelForm}. */
interface ChannelFormProps {
  /** The channel that is changed; null for a new one. */
  readonly stored: AlertChannel | null;
  readonly onClose: () => void;
}

/** Creates a channel, or changes where one sends. */
export function ChannelForm({ stored, onClose }: ChannelFormProps) {
  const api = useApi();
  const queries = useQueryClient();
  const saving = useMutation({
    mutationFn: (body: ChannelInput) =>
      stored === null
        ? api.call("createChannel", { body })
        : api.call("changeChannel", { params: { id: stored.id }, body: patchOf(body) }),
    async onSuccess() {
      await queries.invalidateQueries({ queryKey: queryKeys.channels });
      onClose();
    },
  });
  const { values, field, submit } = useCheckedForm({
    initialValues: stored === null ? emptyChannel : { ...emptyChannel, ...stored },
    read: readChannel,
    fieldOf: channelField,
    error: saving.error,
  });
  return (
    <FormDialog
      title={stored === null ? "New channel" : "Change the channel"}
      noValidate
      action={stored === null ? "Create" : "Save"}
      onSubmit={() => submit(saving.mutate)}
      work={saving}
      failure={stored === null ? "The channel was not created" : "The channel was not changed"}
      result={null}
      onClose={onClose}
    >
      {stored === null && (
        <SegmentedControl
          aria-label="Kind of channel"
          {...field("kind")}
          data={Object.entries(channelKinds).map(([value, { label }]) => ({ value, label }))}
        />
      )}
      <TextInput label="Name" required maxLength={128} autoComplete="off" {...field("name")} data-autofocus />
      {values.kind === "mail" ? (
        <TagsInput
          label="Addresses"
          description={`They get a mail. At most ${alertBounds.addresses}; press Enter after each.`}
          required
          maxTags={alertBounds.addresses}
          splitChars={[",", ";", " "]}
          acceptValueOnBlur
          {...field("to")}
        />
      ) : (
        <WebhookChoice field={field} />
      )}
    </FormDialog>
  );
}

type ChannelField = (name: keyof TypedChannel) => object;

/** Which webhook is sent alerts, and how they are written. */
function WebhookChoice({ field }: { readonly field: ChannelField }) {
  const { data: webhooks, error, refetch } = useWebhooks();
  return (
    <>
      <Failure error={error} title="The webhooks could not be read" onRetry={() => void refetch()} />
      {webhooks?.length === 0 && (
        <Text size="sm">
          There is no webhook yet: <Link href="/webhooks">create one</Link>. It may be without events.
        </Text>
      )}
      <NativeSelect
        label="Webhook"
        required
        data={[
          { value: "", label: "Choose one" },
          ...(webhooks ?? []).map((webhook) => ({ value: webhook.id, label: webhookTitle(webhook) })),
        ]}
        {...field("webhook_id")}
      />
      <NativeSelect
        label="Written as"
        description="The form that the receiver takes."
        data={WebhookFormat.options.map((value) => ({ value, label: formatNames[value] }))}
        {...field("format")}
      />
    </>
  );
}

function readChannel({ kind, name, to, webhook_id, format }: TypedChannel) {
  const sends = kind === "mail" ? { to } : { webhook_id, format };
  const body = { kind, name: name.trim(), ...sends };
  const read = readBody<TypedChannel, typeof ChannelInput>(ChannelInput, body, channelField);
  const wrong = to.find((address) => !EmailAddress.safeParse(address).success);
  if (wrong !== undefined && read.faults.to !== undefined) read.faults.to = `${wrong} is no e-mail address.`;
  return read;
}

/** The kind of a channel stays. */
function patchOf({ kind: _, ...body }: ChannelInput): ChannelPatch {
  return ChannelPatch.parse(body);
}

function channelField(pointer: string): keyof TypedChannel {
  const [, first = ""] = pointer.split("/");
  return first in emptyChannel ? (first as keyof TypedChannel) : "name";
}

import type { Webhook, WebhookInput, WebhookPatch } from "@devmesh/contracts/model/webhook";
import { Text } from "@mantine/core";
import { useMutation } from "@tanstack/react-query";
import { useState } from "react";
import { Link } from "wouter";
import { useApi } from "../../api/api-context.tsx";
import { Snippet } from "../../components/code-block.tsx";
import { FormDialog } from "../../components/form-dialog.tsx";
import { useCheckedForm } from "../../components/use-checked-form.ts";
import {
  emptyWebhook,
  readNewWebhook,
  readWebhookPatch,
  webhookAsTyped,
  webhookField,
} from "./typed-webhook.ts";
import { useWebhooksAgain } from "./use-webhooks.ts";
import { WebhookFields } from "./webhook-fields.tsx";

/** Creates a webhook and shows its secret. */
export function CreateWebhook({ onClose }: { readonly onClose: () => void }) {
  const api = useApi();
  const readAgain = useWebhooksAgain();
  const creation = useMutation({
    mutationFn: (body: WebhookInput) => api.call("createWebhook", { body }),
    onSuccess: readAgain,
  });
  const { values, field, submit } = useCheckedForm({
    initialValues: emptyWebhook,
    read: readNewWebhook,
    fieldOf: webhookField,
    error: creation.error,
  });
  return (
    <FormDialog
      title="New webhook"
      noValidate
      action="Create"
      onSubmit={() => submit(creation.mutate)}
      work={creation}
      failure="The webhook was not created"
      result={
        creation.data === undefined
          ? null
          : {
              message: "The webhook is created. Its receiver verifies requests with this secret.",
              details: (
                <>
                  <Snippet label="Secret" text={creation.data.secret} />
                  <Text size="sm">
                    <Link href={`/webhooks/${creation.data.id}`}>Open the webhook</Link>, to send it a test.
                  </Text>
                </>
              ),
            }
      }
      onClose={onClose}
    >
      <WebhookFields values={values} field={field} />
    </FormDialog>
  );
}

/** Properties of {@link ChangeWebhook}. */
interface ChangeWebhookProps {
  readonly webhook: Webhook;
  readonly onClose: () => void;
}

/** Changes where a webhook sends, and what. */
export function ChangeWebhook({ webhook, onClose }: ChangeWebhookProps) {
  const api = useApi();
  const readAgain = useWebhooksAgain();
  // It is read again while the form is open.
  const [before] = useState(webhook);
  const change = useMutation({
    mutationFn: (body: WebhookPatch) => api.call("patchWebhook", { params: { id: webhook.id }, body }),
    async onSuccess() {
      await readAgain();
      onClose();
    },
  });
  const { values, field, submit } = useCheckedForm({
    initialValues: webhookAsTyped(before),
    read: (typed) => readWebhookPatch(typed, before),
    fieldOf: webhookField,
    error: change.error,
  });
  return (
    <FormDialog
      title="Change the webhook"
      noValidate
      action="Save"
      onSubmit={() => submit(change.mutate)}
      work={change}
      failure="The webhook was not changed"
      result={null}
      onClose={onClose}
    >
      <WebhookFields values={values} field={field} />
    </FormDialog>
  );
}

import { EmailAddress } from "@devmesh/contracts/model/email-address";
import { Code, Text, TextInput } from "@mantine/core";
import { useForm } from "@mantine/form";
import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useApi } from "../../api/api-context.tsx";
import { queryKeys } from "../../api/query-keys.ts";
import { useReading } from "../../api/use-reading.ts";
import { FormDialog } from "../../components/form-dialog.tsx";

/** Asks for the address of a customer and sends the invitation. */
export function InviteCustomer({ onClose }: { readonly onClose: () => void }) {
  const api = useApi();
  const queries = useQueryClient();
  const form = useForm({
    initialValues: { email: "" },
    validate: {
      email: (email) => (EmailAddress.safeParse(email).success ? null : "This is no e-mail address."),
    },
  });
  const invitation = useMutation({
    mutationFn: (email: string) =>
      api.call("registerCustomer", { query: { email: EmailAddress.parse(email) } }),
    onSuccess: () => queries.invalidateQueries({ queryKey: queryKeys.customers }),
  });
  const delivery = useReading({
    queryKey: queryKeys.mailDelivery,
    queryFn: async ({ signal }) => (await api.call("readMesh", { signal })).mail_delivery ?? null,
  });
  return (
    <FormDialog
      title="Invite a customer"
      noValidate
      action="Invite"
      onSubmit={form.onSubmit(({ email }) => invitation.mutate(email))}
      work={invitation}
      failure="The invitation was not sent"
      result={invitation.isSuccess ? resultOf(invitation.variables, delivery.data === "files") : null}
      onClose={onClose}
    >
      <TextInput
        type="email"
        label="E-mail"
        description="The mail holds a link to confirm the address and the customer's access token."
        required
        {...form.getInputProps("email")}
        data-autofocus
      />
    </FormDialog>
  );
}

function resultOf(email: string, goesToFile: boolean) {
  const limit = "unless the address, or all together, got as many as may be sent within an hour.";
  if (!goesToFile) return { message: `An invitation to ${email} is on its way, ${limit}` };
  return {
    message: `The invitation to ${email} is written to a file, ${limit}`,
    details: (
      <Text size="sm">
        No mail is sent, as the mesh has no mail server: <Code>SMTP_URL</Code> is not set. The newest{" "}
        <Code>.eml</Code> file holds the invitation: in <Code>.data/outbox</Code> where <Code>npm start</Code>{" "}
        runs, elsewhere in the folder <Code>OUTBOX_DIR</Code> of the mailer.
      </Text>
    ),
  };
}

import { EmailAddress } from "@devmesh/contracts/model/email-address";
import { TextInput } from "@mantine/core";
import { useForm } from "@mantine/form";
import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useApi } from "../../api/api-context.tsx";
import { queryKeys } from "../../api/query-keys.ts";
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
  const message = `An invitation to ${invitation.variables} is on its way, if the address may get one: at most three an hour do.`;
  return (
    <FormDialog
      title="Invite a customer"
      noValidate
      action="Invite"
      onSubmit={form.onSubmit(({ email }) => invitation.mutate(email))}
      work={invitation}
      failure="The invitation was not sent"
      result={invitation.isSuccess ? { message } : null}
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

import { EmailAddress } from "@devmesh/contracts/model/email-address";
import { Alert, Button, Stack, TextInput } from "@mantine/core";
import { useForm } from "@mantine/form";
import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useApi } from "../../api/api-context.tsx";
import { queryKeys } from "../../api/query-keys.ts";
import { Dialog } from "../../components/dialog.tsx";
import { DialogActions, SubmitOrCancel } from "../../components/dialog-actions.tsx";
import { Failure } from "../../components/failure.tsx";

/** Asks for the address of a customer and sends the invitation. */
export function InviteCustomer({ onClose }: { readonly onClose: () => void }) {
  return (
    <Dialog onClose={onClose} title="Invite a customer">
      <Invitation onClose={onClose} />
    </Dialog>
  );
}

function Invitation({ onClose }: { readonly onClose: () => void }) {
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

  if (invitation.isSuccess) {
    return (
      <Stack>
        <Alert color="teal" variant="light" role="status">
          An invitation to {invitation.variables} is on its way, if the address may get one: at most three an
          hour do.
        </Alert>
        <DialogActions>
          <Button onClick={onClose} data-autofocus>
            Done
          </Button>
        </DialogActions>
      </Stack>
    );
  }
  return (
    <form onSubmit={form.onSubmit(({ email }) => invitation.mutate(email))} noValidate>
      <Stack>
        <TextInput
          type="email"
          label="E-mail"
          description="The mail holds a link to confirm the address and the customer's access token."
          required
          {...form.getInputProps("email")}
          data-autofocus
        />
        {invitation.error !== null && <Failure error={invitation.error} title="Nobody was invited" />}
        <SubmitOrCancel action="Invite" running={invitation.isPending} onCancel={onClose} />
      </Stack>
    </form>
  );
}

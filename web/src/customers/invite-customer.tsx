import { EmailAddress } from "@devmesh/contracts/model/email-address";
import { Alert, Button, Stack, TextInput } from "@mantine/core";
import { useMutation, useQueryClient } from "@tanstack/react-query";
import { type FormEvent, useState } from "react";
import { useApi } from "../api/api-context.tsx";
import { queryKeys } from "../api/query-keys.ts";
import { Dialog } from "../elements/dialog.tsx";
import { DialogActions, SubmitOrCancel } from "../elements/dialog-actions.tsx";
import { Failure } from "../elements/failure.tsx";

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
  const [email, setEmail] = useState("");
  const [wrong, setWrong] = useState<string | null>(null);
  const invitation = useMutation({
    mutationFn: (address: string) => api.call("registerCustomer", { query: { email: address } }),
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
  const submit = (event: FormEvent) => {
    event.preventDefault();
    const address = EmailAddress.safeParse(email);
    setWrong(address.success ? null : "This is no e-mail address.");
    if (address.success) invitation.mutate(address.data);
  };
  return (
    <form onSubmit={submit} noValidate>
      <Stack>
        <TextInput
          type="email"
          label="E-mail"
          description="The mail holds a link to confirm the address and the customer's access token."
          required
          value={email}
          onChange={(event) => setEmail(event.currentTarget.value)}
          error={wrong}
          data-autofocus
        />
        {invitation.error !== null && <Failure error={invitation.error} title="Nobody was invited" />}
        <SubmitOrCancel action="Invite" running={invitation.isPending} onCancel={onClose} />
      </Stack>
    </form>
  );
}

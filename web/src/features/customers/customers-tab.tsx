import type { ListedCustomer } from "@devmesh/contracts/model/customer";
import { ActionIcon, Table, Text, Tooltip } from "@mantine/core";
import { useDisclosure } from "@mantine/hooks";
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { Trash2 } from "lucide-react";
import { useState } from "react";
import { useApi } from "../../api/api-context.tsx";
import { queryKeys } from "../../api/query-keys.ts";
import { Confirmation } from "../../components/confirmation.tsx";
import { RelativeTime } from "../../components/relative-time.tsx";
import { ShortListTab } from "../../components/short-list-tab.tsx";
import { Tag } from "../../components/tag.tsx";
import { InviteCustomer } from "./invite-customer.tsx";

const headings = ["E-mail", "State", "Invited", "Changed"];

/** Customers: invited by e-mail, confirmed or not, removed. */
export function CustomersTab() {
  const api = useApi();
  const [inviting, invite] = useDisclosure(false);
  const [removed, setRemoved] = useState<ListedCustomer | null>(null);
  const query = useQuery({
    queryKey: queryKeys.customers,
    queryFn: ({ signal }) => api.call("listCustomers", { signal }),
  });
  return (
    <ShortListTab
      title="Customers"
      noun="customer"
      query={query}
      filterPlaceholder="E-mail"
      find={matchingCustomers}
      none="There are no customers yet: invite the first one by e-mail."
      action="Invite customer"
      onAction={invite.open}
      headings={headings}
      minWidth={560}
      row={(customer) => (
        <CustomerRow key={customer.id} customer={customer} onRemove={() => setRemoved(customer)} />
      )}
      dialogs={
        <>
          {inviting && <InviteCustomer onClose={invite.close} />}
          {removed !== null && <RemoveCustomer customer={removed} onClose={() => setRemoved(null)} />}
        </>
      }
    />
  );
}

function matchingCustomers(customers: readonly ListedCustomer[], filter: string): readonly ListedCustomer[] {
  return customers.filter(({ email }) => email.toLowerCase().includes(filter.toLowerCase()));
}

function CustomerRow({
  customer,
  onRemove,
}: {
  readonly customer: ListedCustomer;
  readonly onRemove: () => void;
}) {
  const { email, created_at, updated_at, confirmed_at } = customer;
  return (
    <Table.Tr>
      <Table.Td>{email}</Table.Td>
      <Table.Td>
        {confirmed_at === null ? (
          <Tag>not confirmed</Tag>
        ) : (
          <>
            <Tag look="good">confirmed</Tag> <RelativeTime at={confirmed_at} />
          </>
        )}
      </Table.Td>
      <Table.Td>
        <RelativeTime at={created_at} />
      </Table.Td>
      <Table.Td>
        <RelativeTime at={updated_at} />
      </Table.Td>
      <Table.Td ta="end">
        <Tooltip label="Remove">
          <ActionIcon variant="subtle" color="red" aria-label={`Remove ${email}`} onClick={onRemove}>
            <Trash2 size={16} />
          </ActionIcon>
        </Tooltip>
      </Table.Td>
    </Table.Tr>
  );
}

function RemoveCustomer({
  customer,
  onClose,
}: {
  readonly customer: ListedCustomer;
  readonly onClose: () => void;
}) {
  const api = useApi();
  const queries = useQueryClient();
  const removal = useMutation({
    mutationFn: () => api.call("deleteCustomer", { params: { id: customer.id } }),
    onSuccess: async () => {
      await queries.invalidateQueries({ queryKey: queryKeys.customers });
      onClose();
    },
  });
  return (
    <Confirmation
      title={`Remove ${customer.email}?`}
      action="Remove"
      running={removal.isPending}
      error={removal.error}
      onConfirm={() => removal.mutate()}
      onClose={onClose}
    >
      <Text size="sm">The access token stops working within a second and the metadata are gone.</Text>
    </Confirmation>
  );
}

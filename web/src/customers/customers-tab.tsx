import type { ListedCustomer } from "@devmesh/contracts/model/customer";
import { ActionIcon, Button, Group, ScrollArea, Table, Text, Tooltip } from "@mantine/core";
import { useDisclosure } from "@mantine/hooks";
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useMemo, useState } from "react";
import { useApi } from "../api/api-context.tsx";
import { queryKeys } from "../api/query-keys.ts";
import { Confirmation } from "../elements/confirmation.tsx";
import { Failure } from "../elements/failure.tsx";
import { FilterInput } from "../elements/filter-input.tsx";
import { Icon } from "../elements/icon.tsx";
import { MoreRows, rowStep } from "../elements/more-rows.tsx";
import { Page } from "../elements/page.tsx";
import { RelativeTime } from "../elements/relative-time.tsx";
import { TableHead } from "../elements/table-head.tsx";
import { Tag } from "../elements/tag.tsx";
import { useFilterAddress } from "../elements/use-filter-address.ts";
import { Waiting } from "../elements/waiting.tsx";
import { InviteCustomer } from "./invite-customer.tsx";

/** Customers among which one is found without a filter. */
const fewCustomers = 10;

/** Customers: invited by e-mail, confirmed or not yet, removed. */
export function CustomersTab() {
  const api = useApi();
  const [inviting, invite] = useDisclosure(false);
  const [removed, setRemoved] = useState<ListedCustomer | null>(null);
  const { data, error, isPending, refetch } = useQuery({
    queryKey: queryKeys.customers,
    queryFn: ({ signal }) => api.call("listCustomers", { signal }),
  });
  const [filter, setFilter] = useFilterAddress();
  const [most, setMost] = useState(rowStep);
  const matching = useMemo(
    () => (data ?? []).filter(({ email }) => email.toLowerCase().includes(filter.trim().toLowerCase())),
    [data, filter],
  );
  return (
    <Page
      title="Customers"
      actions={
        <Button leftSection={<Icon name="add" size={16} />} onClick={invite.open}>
          Invite customer
        </Button>
      }
    >
      {error !== null && (
        <Failure error={error} title="The customers could not be read" onRetry={() => void refetch()} />
      )}
      {isPending && <Waiting />}
      {data?.length === 0 && (
        <Text c="dimmed" py="xl" ta="center">
          There are no customers yet: invite the first one by e-mail.
        </Text>
      )}
      {data !== undefined && (data.length > fewCustomers || filter !== "") && (
        <Group gap="sm" justify="space-between">
          <FilterInput label="Filter customers" placeholder="E-mail" filter={filter} onFilter={setFilter} />
          <Text size="sm" c="dimmed" role="status">
            {matching.length === 1 ? "1 customer" : `${matching.length.toLocaleString("en")} customers`}
          </Text>
        </Group>
      )}
      {data !== undefined && data.length > 0 && matching.length === 0 && (
        <Text c="dimmed" py="xl" ta="center">
          No customer matches.
        </Text>
      )}
      {matching.length > 0 && (
        <ScrollArea>
          <Table miw={560} aria-label="Customers" highlightOnHover>
            <TableHead headings={["E-mail", "State", "Invited", "Changed"]} />
            <Table.Tbody>
              {matching.slice(0, most).map((customer) => (
                <CustomerRow key={customer.id} customer={customer} onRemove={() => setRemoved(customer)} />
              ))}
            </Table.Tbody>
          </Table>
        </ScrollArea>
      )}
      <MoreRows
        what="customers"
        shown={most}
        total={matching.length}
        onMore={() => setMost(most + rowStep)}
      />
      {inviting && <InviteCustomer onClose={invite.close} />}
      {removed !== null && <RemoveCustomer customer={removed} onClose={() => setRemoved(null)} />}
    </Page>
  );
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
            <Icon name="delete" size={16} />
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

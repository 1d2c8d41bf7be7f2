import type { ListedCustomer } from "@devmesh/contracts/model/customer";
import { useApi } from "../../api/api-context.tsx";
import { queryKeys } from "../../api/query-keys.ts";
import { useReading } from "../../api/use-reading.ts";
import type { Column } from "../../components/data-table.tsx";
import { RelativeTime } from "../../components/relative-time.tsx";
import { ShortListTab } from "../../components/short-list-tab.tsx";
import { StateBadge } from "../../components/state.tsx";
import { InviteCustomer } from "./invite-customer.tsx";

const columns: readonly Column<ListedCustomer>[] = [
  { heading: "E-mail", namesRow: true, cell: ({ email }) => email },
  {
    heading: "State",
    cell: ({ confirmed_at }) =>
      confirmed_at === null ? (
        <StateBadge look="idle">not confirmed</StateBadge>
      ) : (
        <>
          <StateBadge look="good">confirmed</StateBadge> <RelativeTime at={confirmed_at} />
        </>
      ),
  },
  { heading: "Invited", cell: ({ created_at }) => <RelativeTime at={created_at} /> },
  { heading: "Changed", cell: ({ updated_at }) => <RelativeTime at={updated_at} /> },
];

const textsOf = ({ id, email }: ListedCustomer) => [email, id];

/** Customers: invited by e-mail, confirmed or not, removed. */
export function CustomersTab() {
  const api = useApi();
  const query = useReading({
    queryKey: queryKeys.customers,
    queryFn: ({ signal }) => api.call("listCustomers", { signal }),
  });
  return (
    <ShortListTab
      title="Customers"
      noun="customer"
      query={query}
      filterPlaceholder="E-mail"
      textsOf={textsOf}
      none="There are no customers yet. Invite the first one, who gets an access token for your own app by e-mail."
      columns={columns}
      minWidth={560}
      removal={{
        action: "Remove",
        label: ({ email }) => `Remove ${email}`,
        consequence: () => "The access token stops working within a second, and the metadata is deleted.",
        run: ({ id }) => api.call("deleteCustomer", { params: { id } }),
      }}
      creation="Invite customer"
      creationDialog={(onClose) => <InviteCustomer onClose={onClose} />}
    />
  );
}

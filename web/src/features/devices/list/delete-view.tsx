import type { SavedView } from "@devmesh/contracts/model/saved-view";
import { useQueryClient } from "@tanstack/react-query";
import { useApi } from "../../../api/api-context.tsx";
import { queryKeys } from "../../../api/query-keys.ts";
import { Confirmation } from "../../../components/confirmation.tsx";

/** Properties of {@link DeleteView}. */
interface DeleteViewProps {
  readonly view: SavedView;
  readonly onClose: () => void;
}

/** Asks before a view is deleted for everybody. */
export function DeleteView({ view: { id, name }, onClose }: DeleteViewProps) {
  const api = useApi();
  const queries = useQueryClient();
  return (
    <Confirmation
      title={`Delete the view ${name}`}
      action="Delete"
      run={async () => {
        await api.call("deleteView", { params: { id } });
        await queries.invalidateQueries({ queryKey: queryKeys.savedViews });
      }}
      onClose={onClose}
    >
      It disappears for all who sign in here. Its devices stay.
    </Confirmation>
  );
}

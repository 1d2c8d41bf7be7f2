import type { SavedView } from "@devmesh/contracts/model/saved-view";
import { TextInput } from "@mantine/core";
import { useForm } from "@mantine/form";
import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { useApi } from "../../../api/api-context.tsx";
import { queryKeys } from "../../../api/query-keys.ts";
import { FormDialog } from "../../../components/form-dialog.tsx";
import { useSavedViews } from "../shared/saved-views.ts";

/** Properties of {@link NameView}. */
interface NameViewProps {
  /** The view that gets another name; null to save a new one. */
  readonly renamed: SavedView | null;
  /** What a new one shows. */
  readonly query: string;
  readonly onClose: () => void;
}

/** Saves a view under a name, in place of another one of that name, or renames one. */
export function NameView({ renamed: given, query, onClose }: NameViewProps) {
  const api = useApi();
  const queries = useQueryClient();
  // A save makes the shown list the list of a view.
  const [renamed] = useState(given);
  const views = useSavedViews();
  const form = useForm({ initialValues: { name: renamed?.name ?? "" } });
  const name = form.values.name.trim();
  const replaced = renamed === null ? views.find((view) => view.name === name) : undefined;
  const saving = useMutation({
    mutationFn: () => {
      if (renamed !== null) return api.call("patchView", { params: { id: renamed.id }, body: { name } });
      if (replaced !== undefined)
        return api.call("patchView", { params: { id: replaced.id }, body: { query } });
      return api.call("createView", { body: { name, query } });
    },
    onSuccess: async () => {
      await queries.invalidateQueries({ queryKey: queryKeys.savedViews });
      onClose();
    },
  });
  return (
    <FormDialog
      title={renamed === null ? "Save view" : "Rename the view"}
      action={renamed !== null ? "Rename" : replaced === undefined ? "Save" : "Replace"}
      onSubmit={form.onSubmit(() => saving.mutate())}
      work={saving}
      failure="The view was not saved"
      result={null}
      onClose={onClose}
    >
      <TextInput
        label="Name"
        description={
          replaced === undefined
            ? "All who sign in here see it, below Devices."
            : "A view of this name exists; it will show this list instead."
        }
        required
        maxLength={60}
        pattern=".*\S.*"
        autoComplete="off"
        {...form.getInputProps("name")}
        data-autofocus
      />
    </FormDialog>
  );
}

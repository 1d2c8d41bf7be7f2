import { TextInput } from "@mantine/core";
import { useForm } from "@mantine/form";
import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useLocation } from "wouter";
import { useApi } from "../../api/api-context.tsx";
import { queryKeys } from "../../api/query-keys.ts";
import { FormDialog } from "../../components/form-dialog.tsx";

const idle = { isPending: false, error: null };

/** The name of a board, which the contract bounds. */
const bounds = { required: true, maxLength: 60, pattern: ".*\\S.*", autoComplete: "off" } as const;

/** Creates an empty board under a name and opens it. */
export function CreateBoard({ onClose }: { readonly onClose: () => void }) {
  const api = useApi();
  const queries = useQueryClient();
  const [, navigate] = useLocation();
  const form = useForm({ initialValues: { name: "" } });
  const creating = useMutation({
    mutationFn: () => api.call("createBoard", { body: { name: form.values.name.trim() } }),
    onSuccess(board) {
      queries.setQueryData(queryKeys.board(board.id), board);
      navigate(`/boards/${board.id}?edit=1`);
    },
  });
  return (
    <FormDialog
      title="New board"
      action="Create"
      onSubmit={form.onSubmit(() => creating.mutate())}
      work={creating}
      failure="The board was not created"
      result={null}
      onClose={onClose}
    >
      <TextInput
        label="Name"
        description="All who sign in here see the board."
        {...bounds}
        {...form.getInputProps("name")}
        data-autofocus
      />
    </FormDialog>
  );
}

/** Properties of {@link RenameBoard}. */
interface RenameBoardProps {
  readonly name: string;
  readonly onRename: (name: string) => void;
  readonly onClose: () => void;
}

/** Gives a board another name. */
export function RenameBoard({ name, onRename, onClose }: RenameBoardProps) {
  const form = useForm({ initialValues: { name } });
  return (
    <FormDialog
      title="Rename the board"
      action="Rename"
      onSubmit={form.onSubmit((values) => {
        onRename(values.name.trim());
        onClose();
      })}
      work={idle}
      failure=""
      result={null}
      onClose={onClose}
    >
      <TextInput label="Name" {...bounds} {...form.getInputProps("name")} data-autofocus />
    </FormDialog>
  );
}

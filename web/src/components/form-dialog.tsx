import { Alert, Button, Group, type MantineSize, Stack } from "@mantine/core";
import { CircleCheck } from "lucide-react";
import type { FormEvent, ReactNode } from "react";
import { Dialog } from "./dialog.tsx";
import { Failure } from "./failure.tsx";

/** Properties of {@link FormDialog}. */
interface FormDialogProps {
  readonly title: string;
  readonly size?: MantineSize;
  /** The fields. */
  readonly children: ReactNode;
  /** The browser leaves it to the form to say what is wrong in a field. */
  readonly noValidate?: true;
  /** Label of the button that submits. */
  readonly action: string;
  readonly onSubmit: (event: FormEvent<HTMLFormElement>) => void;
  readonly work: { readonly isPending: boolean; readonly error: unknown };
  /** Heading of its error. */
  readonly failure: string;
  /** Shown in place of the form after its work; null before. */
  readonly result: {
    readonly message: string;
    readonly details?: ReactNode;
    /** What to do next, beside the button that closes. */
    readonly next?: ReactNode;
  } | null;
  readonly onClose: () => void;
}

/** A form in a dialog, then the result of what it was for. */
export function FormDialog(props: FormDialogProps) {
  const {
    title,
    size = "md",
    children,
    noValidate,
    action,
    onSubmit,
    work,
    failure,
    result,
    onClose,
  } = props;
  return (
    <Dialog onClose={onClose} title={title} size={size}>
      {result === null ? (
        <form
          noValidate={noValidate}
          onSubmit={(event) => {
            event.preventDefault();
            onSubmit(event);
          }}
        >
          <Stack>
            {children}
            <Failure error={work.error} title={failure} />
            <SubmitOrCancel action={action} running={work.isPending} onCancel={onClose} />
          </Stack>
        </form>
      ) : (
        <Stack>
          <Alert color="teal" icon={<CircleCheck size={16} />} role="status">
            {result.message}
          </Alert>
          {result.details}
          <Group justify="flex-end">
            {result.next}
            <Button onClick={onClose} data-autofocus>
              Done
            </Button>
          </Group>
        </Stack>
      )}
    </Dialog>
  );
}

/** Properties of {@link SubmitOrCancel}. */
interface SubmitOrCancelProps {
  /** Label of the button that submits the form. */
  readonly action: string;
  readonly running?: boolean;
  /** The form is not complete or not valid. */
  readonly disabled?: boolean;
  readonly destructive?: boolean;
  readonly onCancel: () => void;
}

/** The buttons at the end of a form in a dialog. */
export function SubmitOrCancel(props: SubmitOrCancelProps) {
  const { action, running = false, disabled = false, destructive = false, onCancel } = props;
  return (
    <Group justify="flex-end">
      <Button variant="default" onClick={onCancel}>
        Cancel
      </Button>
      <Button
        type="submit"
        loading={running}
        disabled={disabled}
        {...(destructive && { "data-danger": true })}
      >
        {action}
      </Button>
    </Group>
  );
}

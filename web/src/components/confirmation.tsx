import { Button, Stack } from "@mantine/core";
import type { ReactNode } from "react";
import { Dialog } from "./dialog.tsx";
import { DialogActions } from "./dialog-actions.tsx";
import { Failure } from "./failure.tsx";

/** Properties of {@link Confirmation}. */
interface ConfirmationProps {
  readonly title: string;
  /** The consequence. */
  readonly children: ReactNode;
  /** Label of the button that confirms. */
  readonly action: string;
  readonly running: boolean;
  /** The error of the last attempt; null or undefined for none. */
  readonly error?: unknown;
  readonly onConfirm: () => void;
  readonly onClose: () => void;
}

/** Asks before an action that cannot be undone; the button that cancels has the focus. */
export function Confirmation({
  title,
  children,
  action,
  running,
  error,
  onConfirm,
  onClose,
}: ConfirmationProps) {
  return (
    <Dialog onClose={onClose} title={title}>
      <Stack>
        <div>{children}</div>
        {error != null && <Failure error={error} title="That did not work" />}
        <DialogActions>
          <Button variant="default" onClick={onClose} data-autofocus>
            Cancel
          </Button>
          <Button color="red" loading={running} onClick={onConfirm}>
            {action}
          </Button>
        </DialogActions>
      </Stack>
    </Dialog>
  );
}

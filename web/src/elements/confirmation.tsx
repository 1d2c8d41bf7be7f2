import { Button, Stack } from "@mantine/core";
import type { ReactNode } from "react";
import { Dialog } from "./dialog.tsx";
import { DialogActions } from "./dialog-actions.tsx";
import { Failure } from "./failure.tsx";

/** A question before something that cannot be undone. */
interface ConfirmationProps {
  readonly title: string;
  /** What will happen. */
  readonly children: ReactNode;
  /** What the button that does it says. */
  readonly action: string;
  readonly running: boolean;
  /** Why it did not work, if it was tried; null or undefined otherwise. */
  readonly error?: unknown;
  readonly onConfirm: () => void;
  readonly onClose: () => void;
}

/** Asks before something that cannot be undone; the harmless button has the focus. */
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

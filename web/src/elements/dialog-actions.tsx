import { Button, Group } from "@mantine/core";
import type { ReactNode } from "react";

/** The buttons at the end of a dialog. */
export function DialogActions({ children }: { readonly children: ReactNode }) {
  return <Group justify="flex-end">{children}</Group>;
}

/** What is offered to who has begun something in a dialog. */
interface SubmitOrCancelProps {
  /** What the button that submits the form says. */
  readonly action: string;
  readonly running?: boolean;
  /** The form cannot be submitted as it is. */
  readonly disabled?: boolean;
  readonly destructive?: boolean;
  readonly onCancel: () => void;
}

/** The end of a form in a dialog: leave it, or submit it. */
export function SubmitOrCancel(props: SubmitOrCancelProps) {
  const { action, running = false, disabled = false, destructive = false, onCancel } = props;
  return (
    <DialogActions>
      <Button variant="default" onClick={onCancel}>
        Cancel
      </Button>
      <Button type="submit" loading={running} disabled={disabled} {...(destructive && { color: "red" })}>
        {action}
      </Button>
    </DialogActions>
  );
}

import { Button, Group } from "@mantine/core";

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
      <Button type="submit" loading={running} disabled={disabled} {...(destructive && { color: "red" })}>
        {action}
      </Button>
    </Group>
  );
}

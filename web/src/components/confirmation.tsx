import { Button, Group, Stack, Text } from "@mantine/core";
import { useMutation } from "@tanstack/react-query";
import type { ReactNode } from "react";
import { Dialog } from "./dialog.tsx";
import { Failure } from "./failure.tsx";

/** Properties of {@link Confirmation}. */
interface ConfirmationProps {
  readonly title: string;
  /** The consequence. */
  readonly children: ReactNode;
  /** Label of the button that confirms. */
  readonly action: string;
  /** The action; the dialog shows its error. */
  readonly run: () => Promise<unknown>;
  /** Called when the user cancels, and after the action. */
  readonly onClose: () => void;
}

/** Asks before an action that cannot be undone; the button that cancels has the focus. */
export function Confirmation({ title, children, action, run, onClose }: ConfirmationProps) {
  const running = useMutation({ mutationFn: () => run(), onSuccess: onClose });
  return (
    <Dialog onClose={onClose} title={title}>
      <Stack>
        <Text component="div" size="sm">
          {children}
        </Text>
        <Failure error={running.error} title="The action failed" />
        <Group justify="flex-end">
          <Button variant="default" onClick={onClose} data-autofocus>
            Cancel
          </Button>
          <Button data-danger loading={running.isPending} onClick={() => running.mutate()}>
            {action}
          </Button>
        </Group>
      </Stack>
    </Dialog>
  );
}

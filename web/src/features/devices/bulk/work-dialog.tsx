import { Button, Stack } from "@mantine/core";
import type { FormEvent, ReactNode } from "react";
import { Dialog } from "../../../components/dialog.tsx";
import { DialogActions, SubmitOrCancel } from "../../../components/dialog-actions.tsx";
import type { DeviceWork } from "./use-device-work.ts";
import { WorkProgress } from "./work-progress.tsx";

/** Properties of {@link WorkDialog}. */
interface WorkDialogProps {
  readonly title: string;
  /** The form before the work starts. */
  readonly children: ReactNode;
  /** Label of the button that starts the work. */
  readonly action: string;
  readonly destructive?: boolean;
  /** The form is complete and valid. */
  readonly ready: boolean;
  /** Participle of the work, as in "3 of 5 deleted". */
  readonly done: string;
  readonly work: DeviceWork;
  readonly onStart: () => void;
  readonly onClose: () => void;
}

/** A form, then the progress and outcomes of work on many devices, which can be cancelled. */
export function WorkDialog(props: WorkDialogProps) {
  const { title, children, action, destructive = false, ready, done, work, onStart, onClose } = props;
  const running = work.state === "running";
  const submit = (event: FormEvent) => {
    event.preventDefault();
    if (ready && !running) onStart();
  };
  return (
    <Dialog onClose={onClose} title={title} size="lg" locked={running}>
      <form onSubmit={submit}>
        <Stack>
          {work.state === "idle" && children}
          <WorkProgress work={work} done={done} />
          {work.state === "idle" ? (
            <SubmitOrCancel action={action} disabled={!ready} destructive={destructive} onCancel={onClose} />
          ) : (
            <DialogActions>
              {running ? (
                <Button variant="default" onClick={work.cancel}>
                  Cancel the rest
                </Button>
              ) : (
                <Button onClick={onClose} data-autofocus>
                  Close
                </Button>
              )}
            </DialogActions>
          )}
        </Stack>
      </form>
    </Dialog>
  );
}

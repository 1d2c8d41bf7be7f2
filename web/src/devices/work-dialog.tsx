import { Button, Stack } from "@mantine/core";
import type { FormEvent, ReactNode } from "react";
import { Dialog } from "../elements/dialog.tsx";
import { DialogActions, SubmitOrCancel } from "../elements/dialog-actions.tsx";
import type { DeviceWork } from "./use-device-work.ts";
import { WorkProgress } from "./work-progress.tsx";

/** A dialog for work on many devices. */
interface WorkDialogProps {
  readonly title: string;
  /** What is asked before the work begins. */
  readonly children: ReactNode;
  /** What the button that begins the work says. */
  readonly action: string;
  readonly destructive?: boolean;
  /** Whether what is asked has been answered. */
  readonly ready: boolean;
  /** What has been done with a device, as in "3 of 5 deleted". */
  readonly done: string;
  readonly work: DeviceWork;
  readonly onStart: () => void;
  readonly onClose: () => void;
}

/** Asks, works, shows what came of each device; it can be cancelled while it works and is not closed by accident. */
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

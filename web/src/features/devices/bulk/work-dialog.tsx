import { Stack } from "@mantine/core";
import type { FormEvent, ReactNode } from "react";
import { Dialog } from "../../../components/dialog.tsx";
import { SubmitOrCancel } from "../../../components/form-dialog.tsx";
import { countText } from "../../../components/number-text.ts";
import { type DeviceJob, useStartJob } from "./start-job.ts";

/** Properties of each dialog for work on many devices. */
export interface DevicesDialogProps {
  readonly ids: readonly string[];
  readonly onClose: () => void;
}

/** Properties of {@link WorkDialog}. */
interface WorkDialogProps extends DeviceJob {
  /** Default: the name of the job. */
  readonly title?: string;
  readonly children: ReactNode;
  /** Label of the button that starts the work. */
  readonly action: string;
  readonly destructive?: boolean;
  /** The form is complete and valid. */
  readonly ready: boolean;
  readonly onClose: (started: boolean) => void;
}

/** A form that starts work on many devices; the progress is shown apart from it, so that all can be used meanwhile. */
export function WorkDialog(props: WorkDialogProps) {
  const { title = props.name, children, action, destructive = false, ready, onClose, ...job } = props;
  const start = useStartJob();
  const submit = (event: FormEvent) => {
    event.preventDefault();
    if (!ready) return;
    start(job);
    onClose(true);
  };
  const cancel = () => onClose(false);
  return (
    <Dialog onClose={cancel} title={title} size="lg">
      <form onSubmit={submit}>
        <Stack>
          {children}
          <SubmitOrCancel action={action} disabled={!ready} destructive={destructive} onCancel={cancel} />
        </Stack>
      </form>
    </Dialog>
  );
}

/** The devices in the title of a dialog. */
export function inWords(ids: readonly string[]): string {
  return ids.length === 1 ? `${ids[0]}` : `${countText(ids.length)} devices`;
}

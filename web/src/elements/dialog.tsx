import { type MantineSize, Modal } from "@mantine/core";
import { type ReactNode, useEffect, useState } from "react";

/** What stands in front of a view until it is answered. */
interface DialogProps {
  readonly title: string;
  readonly size?: MantineSize;
  /** It cannot be closed by accident: work is under way in it. */
  readonly locked?: boolean;
  readonly onClose: () => void;
  readonly children: ReactNode;
}

/** A dialog, there while it is rendered; the focus then goes back to where it was. */
export function Dialog({ title, size = "md", locked = false, onClose, children }: DialogProps) {
  const [before] = useState(() => document.activeElement);
  useEffect(
    () => () => {
      // What opened it may be gone with what it was about.
      const target =
        before instanceof HTMLElement && before.isConnected ? before : document.querySelector("h1");
      target?.focus();
    },
    [before],
  );
  return (
    <Modal
      opened
      onClose={onClose}
      title={title}
      size={size}
      returnFocus={false}
      closeOnClickOutside={!locked}
      closeOnEscape={!locked}
      withCloseButton={!locked}
      transitionProps={{ duration: 120 }}
      // Mantine makes it a `header`, which outside of `main` would be another banner of the page.
      attributes={{ header: { role: "none" } }}
    >
      {children}
    </Modal>
  );
}

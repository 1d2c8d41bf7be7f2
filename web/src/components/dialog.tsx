import { type MantineSize, Modal } from "@mantine/core";
import { type ReactNode, useEffect, useState } from "react";

/** Properties of {@link Dialog}. */
interface DialogProps {
  readonly title: string;
  readonly size?: MantineSize;
  readonly onClose: () => void;
  readonly children: ReactNode;
}

/** A dialog, open while it is mounted; at its end the focus returns to the element that had it. */
export function Dialog({ title, size = "md", onClose, children }: DialogProps) {
  const [before] = useState(() => document.activeElement);
  useEffect(
    () => () => {
      // The element that opened the dialog may be deleted with its subject.
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
      transitionProps={{ duration: 200, transition: "fade-up" }}
      // Mantine makes it a `header`, which outside of `main` would be another banner of the page.
      attributes={{ header: { role: "none" } }}
    >
      {children}
    </Modal>
  );
}

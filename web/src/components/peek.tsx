import { Drawer } from "@mantine/core";
import { useMediaQuery } from "@mantine/hooks";
import type { ReactNode } from "react";
import { peekWidth } from "./peek-width.ts";
import { phoneQuery } from "./phone.ts";

/** Properties of {@link Peek}. */
interface PeekProps {
  /** Accessible name. */
  readonly label: string;
  readonly onClose: () => void;
  /** Its header with the controls, the one that closes among them, and its content. */
  readonly children: ReactNode;
}

/** What a row is about, beside the list, which stays usable; on a phone a sheet at the bottom. */
export function Peek({ label, onClose, children }: PeekProps) {
  const isPhone = useMediaQuery(phoneQuery, false, { getInitialValueInEffect: false });
  return (
    <Drawer
      opened
      onClose={onClose}
      position={isPhone ? "bottom" : "right"}
      size={isPhone ? "85dvh" : peekWidth}
      withCloseButton={false}
      withOverlay={isPhone}
      // The list keeps the focus, so that its keys go on to the next row.
      trapFocus={isPhone}
      lockScroll={isPhone}
      closeOnClickOutside={isPhone}
      returnFocus={false}
      transitionProps={{ duration: 200 }}
      attributes={{ content: { "aria-label": label, "aria-modal": isPhone } }}
      styles={{ inner: { pointerEvents: "none" }, content: { pointerEvents: "auto" }, body: { padding: 0 } }}
    >
      {children}
    </Drawer>
  );
}

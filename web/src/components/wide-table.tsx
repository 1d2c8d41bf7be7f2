import { ScrollArea } from "@mantine/core";
import type { ReactNode } from "react";
import styles from "./wide-table.module.css";

/** Scrolls a table that is wider than the page; its bar and a shade at its end show that it goes on. */
export function WideTable({ children }: { readonly children: ReactNode }) {
  return (
    <ScrollArea type="auto" offsetScrollbars="present" classNames={{ viewport: styles.viewport ?? "" }}>
      {children}
    </ScrollArea>
  );
}

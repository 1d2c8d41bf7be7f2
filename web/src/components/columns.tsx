import type { ReactNode } from "react";
import styles from "./columns.module.css";

/** Two columns of cards, each a child: what the page is about, and what is beside it; one below the other if narrow. */
export function Columns({ children }: { readonly children: ReactNode }) {
  return <div className={styles.columns}>{children}</div>;
}

import { Text } from "@mantine/core";
import type { ReactNode } from "react";
import { Link } from "wouter";

interface RowLinkProps {
  readonly href: string;
  /** Lines that its text may take; without it a long word breaks. */
  readonly lines?: number;
  readonly children: ReactNode;
}

/** What names a row of a table, as a link to it. */
export function RowLink({ href, lines, children }: RowLinkProps) {
  const cut =
    lines === undefined
      ? { style: { overflowWrap: "anywhere" as const } }
      : { lineClamp: lines, miw: 160, style: { whiteSpace: "normal" as const } };
  return (
    <Text component={Link} href={href} size="sm" fw={500} c="var(--text)" td="none" {...cut}>
      {children}
    </Text>
  );
}

/** The id of a device in a table, as a link to its page. */
export function DeviceIdLink({ id }: { readonly id: string }) {
  return (
    <Text
      component={Link}
      href={`/devices/${id}`}
      size="xs"
      ff="monospace"
      c="var(--text)"
      td="none"
      miw="14ch"
      style={{ display: "inline-block", overflowWrap: "anywhere" }}
    >
      {id}
    </Text>
  );
}

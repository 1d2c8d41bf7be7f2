import { Code } from "@mantine/core";
import type { ReactNode } from "react";

/** Properties of {@link CodeBlock}. */
interface CodeBlockProps {
  readonly label: string;
  /** Height above which it scrolls. */
  readonly maxHeight?: number | string;
  readonly children: ReactNode;
}

/** Code or JSON in a region that scrolls, and that the keyboard can reach. */
export function CodeBlock({ label, maxHeight = "none", children }: CodeBlockProps) {
  return (
    <Code
      block
      tabIndex={0}
      role="region"
      aria-label={label}
      mah={maxHeight}
      // Text for screen readers alone is positioned, and must scroll with its line.
      style={{ overflow: "auto", position: "relative" }}
    >
      {children}
    </Code>
  );
}

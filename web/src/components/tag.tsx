import { Badge } from "@mantine/core";
import type { ReactNode } from "react";

/** Colours by their meaning. */
const looks = {
  plain: { variant: "default" },
  strong: { variant: "filled" },
  good: { variant: "light", color: "teal" },
  bad: { variant: "light", color: "red" },
} as const;

/** A short word, such as a label, a kind or a state. */
export function Tag({
  look = "plain",
  children,
}: {
  readonly look?: keyof typeof looks;
  readonly children: ReactNode;
}) {
  return (
    <Badge {...looks[look]} size="md" radius="sm" tt="none" fw={500} miw="max-content">
      {children}
    </Badge>
  );
}

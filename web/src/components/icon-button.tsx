import { ActionIcon, type ActionIconProps, Tooltip } from "@mantine/core";
import type { ComponentPropsWithoutRef } from "react";

/** Properties of {@link IconButton}: those of a button, with the icon as its child. */
interface IconButtonProps
  extends ActionIconProps,
    Omit<ComponentPropsWithoutRef<"button">, keyof ActionIconProps> {
  /** Accessible name. */
  readonly label: string;
  /** Text of the tooltip, if not the label. */
  readonly tooltip?: string;
}

/** A button that shows only an icon, and its name in a tooltip. */
export function IconButton({ label, tooltip = label, ...props }: IconButtonProps) {
  return (
    <Tooltip label={tooltip}>
      <ActionIcon variant="subtle" aria-label={label} {...props} />
    </Tooltip>
  );
}

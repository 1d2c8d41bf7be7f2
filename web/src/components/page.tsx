import { Group, Stack, Title } from "@mantine/core";
import { type ReactNode, useEffect, useRef } from "react";

/** Properties of {@link Page}. */
export interface PageProps {
  /** Heading of the view, and the end of the document's title. */
  readonly title: string;
  /** The shown part of the view, for the document's title. */
  readonly part?: string | undefined;
  /** Controls beside the heading. */
  readonly actions?: ReactNode;
  /** The view has the height of the window, and its last part scrolls. */
  readonly fills?: boolean;
  readonly children: ReactNode;
}

/** The window without the header and the padding around the view. */
const windowHeight = "calc(100dvh - var(--app-shell-header-offset, 0px) - 2 * var(--mantine-spacing-md))";

/** True after the first view, which must not take the focus from the top of the document. */
let navigated = false;

/** A view with its heading, which takes the focus after a navigation, so that screen readers announce it. */
export function Page({ title, part, actions, fills = false, children }: PageProps) {
  const heading = useRef<HTMLHeadingElement>(null);
  useEffect(() => {
    document.title = [part, title, "Devmesh"].filter((words) => words !== undefined).join(" · ");
  }, [part, title]);
  useEffect(() => {
    if (navigated) heading.current?.focus({ preventScroll: true });
    navigated = true;
  }, []);
  return (
    <Stack gap="md" {...(fills && { h: windowHeight })}>
      <Group justify="space-between" gap="xs">
        <Title order={1} ref={heading} tabIndex={-1} lineClamp={2} title={title} miw={0}>
          {title}
        </Title>
        {actions !== undefined && <Group gap="xs">{actions}</Group>}
      </Group>
      {children}
    </Stack>
  );
}

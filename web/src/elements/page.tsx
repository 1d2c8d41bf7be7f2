import { Group, Stack, Title } from "@mantine/core";
import { type ReactNode, useEffect, useRef } from "react";
import styles from "./page.module.css";

/** What stands around a view. */
interface PageProps {
  /** Heading of the view, and the end of the document's title. */
  readonly title: string;
  /** The part of the view that is shown, for the document's title: browser tabs and bookmarks tell it by that. */
  readonly part?: string | undefined;
  /** Controls beside the heading. */
  readonly actions?: ReactNode;
  /** It is as high as the window, and its last part scrolls in itself. */
  readonly fills?: boolean;
  readonly children: ReactNode;
}

/** Whether a view was shown before: the first one must not take the focus from the top of the document. */
let navigated = false;

/** A view with its heading, which takes the focus after a navigation, so that a screen reader tells where one is. */
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
    <Stack gap="md" {...(fills && { className: styles.fills })}>
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

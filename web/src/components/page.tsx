import { Group, Stack, Title } from "@mantine/core";
import { type ReactNode, useEffect, useRef } from "react";
import { CopyButton } from "./copy-button.tsx";

/** Properties of {@link Page}. */
export interface PageProps {
  /** Heading of the view, and the end of the document's title. */
  readonly title: string;
  /** In place of the heading in the document's title. */
  readonly documentTitle?: string | undefined;
  /** What the heading is if it can be copied, as in "the name". */
  readonly copyable?: string | undefined;
  /** The shown part of the view, for the document's title. */
  readonly part?: string | undefined;
  /** Above the heading, such as a way back. */
  readonly above?: ReactNode;
  /** Below the heading. */
  readonly below?: ReactNode;
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
export function Page(props: PageProps) {
  const { title, documentTitle = title, copyable, part, above, below, actions, fills, children } = props;
  const heading = useRef<HTMLHeadingElement>(null);
  useEffect(() => {
    document.title = [part, documentTitle, "Devmesh"].filter((words) => words !== undefined).join(" · ");
  }, [part, documentTitle]);
  useEffect(() => {
    if (navigated) heading.current?.focus({ preventScroll: true });
    navigated = true;
  }, []);
  return (
    <Stack gap="md" {...(fills && { h: windowHeight })}>
      <div>
        {above}
        <Group justify="space-between" gap="xs">
          <Group gap={4} wrap="nowrap" miw={0}>
            <Title order={1} ref={heading} tabIndex={-1} lineClamp={2} title={title} miw={0}>
              {title}
            </Title>
            {copyable !== undefined && <CopyButton text={title} what={copyable} />}
          </Group>
          {actions !== undefined && <Group gap="xs">{actions}</Group>}
        </Group>
        {below}
      </div>
      {children}
    </Stack>
  );
}

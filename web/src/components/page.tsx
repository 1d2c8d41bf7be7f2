import { type ReactNode, useEffect, useRef } from "react";
import styles from "./page.module.css";

/** Properties of {@link Page}. */
export interface PageProps {
  /** Heading of the view, and the end of the document's title. */
  readonly title: string;
  /** Beside the heading, in grey, such as the number of devices. */
  readonly count?: string | undefined;
  /** In place of the heading in the document's title. */
  readonly documentTitle?: string | undefined;
  /** In place of the heading while it is edited. */
  readonly editor?: ReactNode;
  /** Beside the heading, such as the state of an object. */
  readonly state?: ReactNode;
  /** The shown part of the view, for the document's title. */
  readonly part?: string | undefined;
  /** Above the heading: the way to an object. */
  readonly above?: ReactNode;
  /** Below the heading: a line of facts. */
  readonly below?: ReactNode;
  /** Controls beside the heading, one of them a primary button at most. */
  readonly actions?: ReactNode;
  /** `TabLinks` at the end of the header. */
  readonly tabs?: ReactNode;
  /** The view has the height of the window, and its last part scrolls. */
  readonly fills?: boolean;
  readonly children: ReactNode;
}

/** True after the first view, which must not take the focus from the top of the document. */
let navigated = false;

/** A view with its heading, which takes the focus after a navigation, so that screen readers announce it. */
export function Page(props: PageProps) {
  const { title, count, documentTitle = title, editor, state, part } = props;
  const { above, below, actions, tabs, fills, children } = props;
  const heading = useRef<HTMLHeadingElement>(null);
  useEffect(() => {
    document.title = [part, documentTitle, "Devmesh"].filter((words) => words !== undefined).join(" · ");
  }, [part, documentTitle]);
  useEffect(() => {
    if (navigated) heading.current?.focus({ preventScroll: true });
    navigated = true;
  }, []);
  return (
    <div className={styles.page} data-fills={fills || undefined}>
      <div className={styles.header} data-lined={(tabs !== undefined && tabs !== null) || undefined}>
        {above !== undefined && <div className={styles.above}>{above}</div>}
        <div className={styles.line}>
          {editor ?? (
            <h1 ref={heading} tabIndex={-1} className={styles.title} title={title}>
              {title}
            </h1>
          )}
          {count !== undefined && <span className={styles.count}>{count}</span>}
          {state}
          {actions !== undefined && <div className={styles.actions}>{actions}</div>}
        </div>
        {below !== undefined && below !== false && <div className={styles.below}>{below}</div>}
        {tabs}
      </div>
      {children}
    </div>
  );
}

import { TextInput } from "@mantine/core";
import { useEffect, useRef, useState } from "react";
import { Link } from "wouter";
import { Icon } from "../elements/icon.tsx";
import styles from "./api-reference.module.css";
import { MethodTag } from "./method-tag.tsx";
import type { Operation, OperationGroup } from "./openapi-document.ts";
import { referencePath } from "./reference-path.ts";

interface OperationListProps {
  readonly groups: readonly OperationGroup[];
  /** Id of the operation that is shown. */
  readonly chosen: string | undefined;
}

/** All operations by tag, narrowed by what is typed. */
export function OperationList({ groups, chosen }: OperationListProps) {
  const [filter, setFilter] = useState("");
  const list = useRef<HTMLElement>(null);
  useEffect(() => {
    const current = list.current?.querySelector<HTMLElement>("[aria-current]");
    if (list.current != null && current != null)
      list.current.scrollTop = current.offsetTop - list.current.clientHeight / 2;
  }, []);
  const wanted = filter.trim().toLowerCase();
  const shown = groups
    .map(({ tag, operations }) => ({
      tag,
      operations: operations.filter((operation) => matches(operation, wanted)),
    }))
    .filter(({ operations }) => operations.length > 0);
  return (
    <nav ref={list} aria-label="Operations" className={styles.list} data-chosen={chosen !== undefined}>
      <TextInput
        label="Find an operation"
        placeholder="Part of its path or title"
        type="search"
        leftSection={<Icon name="search" size={16} />}
        value={filter}
        onChange={(event) => setFilter(event.currentTarget.value)}
      />
      {shown.map(({ tag, operations }) => (
        <section key={tag} aria-label={tag}>
          <h2 className={styles.tag}>{tag}</h2>
          <ul className={styles.operations}>
            {operations.map(({ operationId, method, summary }) => (
              <li key={operationId}>
                <Link
                  href={`${referencePath}/${operationId}`}
                  className={styles.operation}
                  {...(operationId === chosen && { "aria-current": "page" as const })}
                >
                  <MethodTag method={method} />
                  <span>{summary}</span>
                </Link>
              </li>
            ))}
          </ul>
        </section>
      ))}
      <div role="status">{shown.length === 0 && "No operation is called so."}</div>
    </nav>
  );
}

function matches({ operationId, method, path, summary }: Operation, wanted: string): boolean {
  return `${method} ${path} ${summary} ${operationId}`.toLowerCase().includes(wanted);
}

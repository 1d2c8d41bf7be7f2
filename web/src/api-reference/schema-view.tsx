import { Code, Text } from "@mantine/core";
import styles from "./api-reference.module.css";
import { Prose } from "./prose.tsx";
import type { MemberDescription, SchemaDescription } from "./schema-description.ts";

/** Which members are marked: those that must be sent, or those that an answer may lack. */
type Marked = "required" | "optional";

interface SchemaViewProps {
  readonly schema: SchemaDescription;
  readonly marked: Marked;
}

/** A schema: what it is, its rules, and what is in it. */
export function SchemaView({ schema, marked }: SchemaViewProps) {
  return (
    <div className={styles.schema}>
      <Text size="sm">
        <TypeName>{schema.type}</TypeName>
      </Text>
      <SchemaDetails schema={schema} marked={marked} depth={0} />
    </div>
  );
}

/** Rules and description of a schema, and what is in it. */
export function SchemaDetails({ schema, marked, depth = 0 }: SchemaViewProps & { readonly depth?: number }) {
  const { description, rules, members, variants } = schema;
  return (
    <>
      {description !== null && <Prose text={description} />}
      {rules.length > 0 && (
        <Text size="xs" c="dimmed">
          {rules.map(({ text, code }, index) => (
            <span key={`${text} ${code}`}>
              {index > 0 && "; "}
              {text}
              {code !== null && (
                <>
                  {" "}
                  <Code className={styles.rule}>{code}</Code>
                </>
              )}
            </span>
          ))}
        </Text>
      )}
      {variants.length > 0 && (
        <ul className={styles.members}>
          {variants.map((variant, index) => (
            // biome-ignore lint/suspicious/noArrayIndexKey: the variants of a schema do not change
            <li key={index}>
              <TypeName>{variant.type}</TypeName>
              <SchemaDetails schema={variant} marked={marked} depth={depth} />
            </li>
          ))}
        </ul>
      )}
      {members.length > 0 && <Members members={members} marked={marked} depth={depth} />}
    </>
  );
}

/** Levels whose members are shown without being opened. */
const openDepth = 1;

interface MembersProps {
  readonly members: readonly MemberDescription[];
  readonly marked: Marked;
  readonly depth: number;
}

function Members({ members, marked, depth }: MembersProps) {
  return (
    <ul className={styles.members}>
      {members.map(({ name, required, schema }) => {
        const within = schema.members.length > 0 || schema.variants.length > 0;
        const term = (
          <>
            {name === null ? <em>any name</em> : <strong className={styles.name}>{name}</strong>}{" "}
            <TypeName>{schema.type}</TypeName>
            {marked === "required" && required && <span className={styles.required}> required</span>}
            {marked === "optional" && !required && name !== null && <TypeName> may be absent</TypeName>}
          </>
        );
        return (
          <li key={name ?? ""}>
            {within ? (
              <details open={depth < openDepth}>
                <summary>{term}</summary>
                <SchemaDetails schema={schema} marked={marked} depth={depth + 1} />
              </details>
            ) : (
              <>
                {term}
                <SchemaDetails schema={schema} marked={marked} depth={depth + 1} />
              </>
            )}
          </li>
        );
      })}
    </ul>
  );
}

/** What something is, beside its name. */
export function TypeName({ children }: { readonly children: string }) {
  return (
    <Text span size="xs" c="dimmed">
      {children}
    </Text>
  );
}

import { Textarea } from "@mantine/core";
import { describeFault, type ParsedJson } from "./parse-json.ts";

/** A text that is to be JSON. */
interface JsonEditorProps {
  readonly label: string;
  readonly description?: string;
  readonly text: string;
  /** What the text was read as. */
  readonly parsed: ParsedJson;
  /** What is wrong with it although it is JSON; null for nothing. */
  readonly wrong?: string | null;
  readonly minRows?: number;
  readonly onChange: (text: string) => void;
}

/** Edits JSON as text and says where it is none. */
export function JsonEditor(props: JsonEditorProps) {
  const { label, description, text, parsed, wrong = null, minRows = 4, onChange } = props;
  return (
    <Textarea
      label={label}
      {...(description !== undefined && { description })}
      value={text}
      onChange={(event) => onChange(event.currentTarget.value)}
      error={parsed.kind === "fault" ? describeFault(parsed.fault) : wrong}
      errorProps={{ role: "alert" }}
      autosize
      minRows={minRows}
      maxRows={28}
      spellCheck={false}
      autoComplete="off"
      styles={{
        input: {
          fontFamily: "var(--mantine-font-family-monospace)",
          fontSize: "var(--mantine-font-size-xs)",
        },
      }}
    />
  );
}

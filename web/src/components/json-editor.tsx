import { Textarea, type TextareaProps } from "@mantine/core";

/** Properties of {@link JsonEditor}: those of a controlled text field. */
type JsonEditorProps = Pick<
  TextareaProps,
  "label" | "description" | "value" | "onChange" | "error" | "minRows"
>;

/** Text field for JSON. */
export function JsonEditor({ minRows = 4, ...props }: JsonEditorProps) {
  return (
    <Textarea
      {...props}
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

import { Button, Group, NativeSelect, Stack, Text, TextInput, VisuallyHidden } from "@mantine/core";
import { type FormEvent, useState } from "react";
import { Confirmation } from "../elements/confirmation.tsx";
import { Failure } from "../elements/failure.tsx";
import { JsonEditor } from "../elements/json-editor.tsx";
import { type ParsedJson, parseJson } from "../elements/parse-json.ts";
import { Snippet } from "../elements/snippet.tsx";
import { AnswerView } from "./answer-view.tsx";
import { curlCommand } from "./curl-command.ts";
import { exampleValue } from "./example-value.ts";
import type { NamedSchemas, Operation, Parameter } from "./openapi-document.ts";
import { resolve } from "./schema-description.ts";
import {
  destroys,
  fieldOf,
  mediaTypes,
  missingParameters,
  type RequestDraft,
  requestOf,
} from "./tried-request.ts";
import { useTrial } from "./use-trial.ts";

interface TryFormProps {
  readonly operation: Operation;
  readonly named: NamedSchemas;
}

const noBody: ParsedJson = { kind: "value", value: null };

/** Sends a request with the signed-in key and shows the answer. */
export function TryForm({ operation, named }: TryFormProps) {
  const { parameters, requestBody, method } = operation;
  const [draft, setDraft] = useState<RequestDraft>(() => ({
    values: {},
    accept: mediaTypes(operation)[0] ?? null,
    body: "",
  }));
  const [tried, setTried] = useState(false);
  const [asking, setAsking] = useState(false);
  const trial = useTrial();

  const schema = requestBody?.content["application/json"]?.schema;
  const parsed = draft.body.trim() === "" ? noBody : parseJson(draft.body);
  const missing = missingParameters(operation, draft);
  const lacksBody = requestBody?.required === true && draft.body.trim() === "";
  const request = requestOf(operation, draft);
  const types = mediaTypes(operation);
  const send = () => {
    setAsking(false);
    trial.send(request);
  };
  const submit = (event: FormEvent) => {
    event.preventDefault();
    setTried(true);
    if (missing.length > 0 || lacksBody || parsed.kind === "fault" || trial.running) return;
    if (destroys(operation)) setAsking(true);
    else send();
  };
  return (
    <Stack gap="sm">
      <form onSubmit={submit} noValidate>
        <Stack gap="sm">
          {parameters.map((parameter) => (
            <ParameterField
              key={fieldOf(parameter)}
              parameter={parameter}
              named={named}
              value={draft.values[fieldOf(parameter)] ?? ""}
              wrong={tried && missing.includes(parameter) ? "It must be given." : null}
              onChange={(value) =>
                setDraft({ ...draft, values: { ...draft.values, [fieldOf(parameter)]: value } })
              }
            />
          ))}
          {types.length > 1 && (
            <NativeSelect
              label="Answer as"
              value={draft.accept ?? ""}
              data={types}
              maw={420}
              onChange={(event) => setDraft({ ...draft, accept: event.currentTarget.value })}
            />
          )}
          {schema !== undefined && (
            <>
              <JsonEditor
                label="Body"
                {...(requestBody?.required !== true && { description: "JSON; left empty, none is sent." })}
                text={draft.body}
                parsed={parsed}
                wrong={tried && lacksBody ? "A body must be given." : null}
                onChange={(body) => setDraft({ ...draft, body })}
              />
              {draft.body.trim() === "" && (
                <Group>
                  <Button
                    size="xs"
                    variant="default"
                    onClick={() =>
                      setDraft({ ...draft, body: JSON.stringify(exampleValue(schema, named), null, 2) })
                    }
                  >
                    Fill in an example
                  </Button>
                </Group>
              )}
            </>
          )}
          <Group>
            <Button type="submit" loading={trial.running} {...(destroys(operation) && { color: "red" })}>
              Send
            </Button>
            {trial.running && (
              <Button variant="default" onClick={trial.stop}>
                Stop
              </Button>
            )}
          </Group>
        </Stack>
      </form>
      <Snippet label="As a command" text={curlCommand(request, window.location.origin)} />
      {trial.error !== null && <Failure error={trial.error} title="No answer came" />}
      <VisuallyHidden role="status">
        {trial.answer !== null && `Answered ${trial.answer.status} ${trial.answer.statusText}`}
      </VisuallyHidden>
      {trial.answer !== null && <AnswerView answer={trial.answer} />}
      {asking && (
        <Confirmation
          title={`${operation.summary}?`}
          action="Send"
          running={false}
          onConfirm={send}
          onClose={() => setAsking(false)}
        >
          <Text size="sm">
            {method} {request.address} is really done. It cannot be undone.
          </Text>
        </Confirmation>
      )}
    </Stack>
  );
}

interface ParameterFieldProps {
  readonly parameter: Parameter;
  readonly named: NamedSchemas;
  readonly value: string;
  readonly wrong: string | null;
  readonly onChange: (value: string) => void;
}

function ParameterField({ parameter, named, value, wrong, onChange }: ParameterFieldProps) {
  const { name, required, schema } = parameter;
  const { type, enum: values, example } = resolve(schema, named);
  const choices = values?.map(String) ?? (type === "boolean" ? ["true", "false"] : null);
  if (choices !== null) {
    return (
      <NativeSelect
        label={name}
        required={required}
        value={value}
        data={[{ value: "", label: "not given" }, ...choices]}
        error={wrong}
        maw={420}
        onChange={(event) => onChange(event.currentTarget.value)}
      />
    );
  }
  return (
    <TextInput
      label={name}
      required={required}
      {...(typeof example === "string" && { placeholder: example })}
      {...(type === "integer" && { inputMode: "numeric" as const })}
      value={value}
      error={wrong}
      autoComplete="off"
      spellCheck={false}
      maw={420}
      onChange={(event) => onChange(event.currentTarget.value)}
    />
  );
}

import { FunctionName } from "@devmesh/contracts/model/acl";
import { rpcTimeout } from "@devmesh/contracts/model/action";
import { isJsonObject, type Json, type JsonObject } from "@devmesh/contracts/model/json";
import { Autocomplete, Group } from "@mantine/core";
import { type UseFormReturnType, useForm } from "@mantine/form";
import { type ReactNode, useState } from "react";
import { issueOf } from "../../../components/issue-of.ts";
import { JsonEditor } from "../../../components/json-editor.tsx";
import { describeFault, parseJson } from "../../../components/parse-json.ts";
import { WholeNumberInput } from "../../../components/whole-number-input.tsx";

/** A call of a device's function as it is typed. */
export interface TypedCall {
  readonly func: string;
  /** JSON; empty for none. */
  readonly params: string;
  /** In milliseconds. */
  readonly timeout: number;
}

type CallForm = UseFormReturnType<TypedCall>;

const emptyCall: TypedCall = { func: "", params: "", timeout: rpcTimeout.default };

/** State of a call form; `ready` if the call can be sent. */
export function useCallForm(): { readonly form: CallForm; readonly ready: boolean } {
  const form = useForm<TypedCall>({
    initialValues: emptyCall,
    validate: {
      func: (func) => (func === "" ? null : issueOf(FunctionName, func)),
      params: (params) => paramsIn(params).error,
    },
    validateInputOnChange: true,
  });
  return { form, ready: form.values.func !== "" && form.isValid() };
}

interface CallFieldsProps {
  readonly form: CallForm;
  readonly description?: string;
  /** Functions to choose from. */
  readonly functions?: readonly string[] | undefined;
  /** Beside the timeout. */
  readonly children: ReactNode;
}

/** The fields of a call: function, parameters and timeout. */
export function CallFields({ form, description, functions = [], children }: CallFieldsProps) {
  return (
    <>
      <Autocomplete
        label="Function"
        {...(description !== undefined && { description })}
        placeholder="Sys.GetInfo"
        data={[...new Set(functions)]}
        {...form.getInputProps("func")}
        onChange={(func) => form.setFieldValue("func", func.trim())}
        data-autofocus
        autoComplete="off"
        spellCheck={false}
      />
      <JsonEditor
        label="Parameters"
        description="A JSON object or array. Optional."
        {...form.getInputProps("params")}
      />
      <Group align="end" justify="space-between">
        <TimeoutInput value={form.values.timeout} onChange={(ms) => form.setFieldValue("timeout", ms)} />
        {children}
      </Group>
    </>
  );
}

interface TimeoutInputProps {
  readonly value: number;
  readonly onChange: (ms: number) => void;
}

/** An emptied field means the default timeout. */
function TimeoutInput({ value, onChange }: TimeoutInputProps) {
  const [emptied, setEmptied] = useState(false);
  return (
    <WholeNumberInput
      label="Timeout (ms)"
      value={emptied ? "" : value}
      min={rpcTimeout.min}
      max={rpcTimeout.max}
      step={1_000}
      clampBehavior="blur"
      onChange={(typed) => {
        setEmptied(typed === "");
        onChange(typed === "" ? rpcTimeout.default : Number(typed));
      }}
      onBlur={() => setEmptied(false)}
      w={180}
    />
  );
}

/**
 * The parameters of a call in a text field: what is sent (undefined for none), and the error in the text (null for
 * none).
 */
interface TypedParams {
  readonly value: JsonObject | Json[] | undefined;
  readonly error: string | null;
}

/** Reads the parameters of a call; a blank text has none. */
export function paramsIn(text: string): TypedParams {
  if (text.trim() === "") return { value: undefined, error: null };
  const parsed = parseJson(text);
  if (parsed.kind === "fault") return { value: undefined, error: describeFault(parsed.fault) };
  if (isJsonObject(parsed.value) || Array.isArray(parsed.value)) return { value: parsed.value, error: null };
  return { value: undefined, error: "Parameters are a JSON object or array." };
}

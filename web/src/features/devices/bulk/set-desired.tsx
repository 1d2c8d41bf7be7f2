import { isJsonObject, type JsonObject } from "@devmesh/contracts/model/json";
import { useForm } from "@mantine/form";
import { useApi } from "../../../api/api-context.tsx";
import { JsonEditor } from "../../../components/json-editor.tsx";
import { describeFault, parseJson } from "../../../components/parse-json.ts";
import { type DevicesDialogProps, inWords, WorkDialog } from "./work-dialog.tsx";

/** Merges members into the desired state of each device. */
export function SetDesired({ ids, onClose }: DevicesDialogProps) {
  const api = useApi();
  const form = useForm({
    initialValues: { desired: "" },
    validate: { desired: (text) => (text.trim() === "" ? null : desiredIn(text).error) },
    validateInputOnChange: true,
  });
  const { value: desired } = desiredIn(form.values.desired);
  return (
    <WorkDialog
      ids={ids}
      name={`Set the desired state of ${inWords(ids)}`}
      action="Set"
      ready={desired !== null}
      done="set"
      act={async (id, signal) => {
        if (desired === null) return;
        await api.call("patchDevice", { params: { id }, body: { shadow: { state: { desired } } }, signal });
      }}
      onClose={onClose}
    >
      <JsonEditor
        label="Desired state"
        description="A JSON object with what is to change. Other members stay; null removes one."
        {...form.getInputProps("desired")}
      />
    </WorkDialog>
  );
}

/** A change of the desired state in a text field; null while the text is none. */
interface TypedDesired {
  readonly value: JsonObject | null;
  readonly error: string | null;
}

function desiredIn(text: string): TypedDesired {
  const parsed = parseJson(text);
  if (parsed.kind === "fault") return { value: null, error: describeFault(parsed.fault) };
  if (isJsonObject(parsed.value) && Object.keys(parsed.value).length > 0)
    return { value: parsed.value, error: null };
  return { value: null, error: "A JSON object with at least one member is needed." };
}

import type { Execution } from "@devmesh/contracts/model/execution";
import { actionText } from "./execution-words.ts";
import { useFirmware } from "./use-firmware.ts";

/** Returns what makes a text of an action, with the name of its firmware, which is read where one of them has some. */
export function useActionText(
  actions: readonly Execution["action"][],
): (action: Execution["action"]) => string {
  const { data } = useFirmware({ enabled: actions.some(({ kind }) => kind === "firmware") });
  return (action) => {
    const file = action.kind === "firmware" && data?.find(({ id }) => id === action.firmware_id);
    return actionText(action, file ? `${file.name} ${file.version}` : undefined);
  };
}

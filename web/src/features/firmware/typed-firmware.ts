import { describeTextError, parseConditionText } from "@devmesh/contracts/model/condition-text";
import { FirmwareInput } from "@devmesh/contracts/model/firmware";

/** Firmware as it is typed; all but name and version may be empty. */
export interface TypedFirmware {
  readonly name: string;
  readonly version: string;
  readonly reported_as: string;
  /** A condition as text. */
  readonly requires: string;
  /** In base64. */
  readonly signature: string;
  readonly note: string;
}

export const emptyFirmware: TypedFirmware = {
  name: "",
  version: "",
  reported_as: "",
  requires: "",
  signature: "",
  note: "",
};

/** The body that declares firmware, and what is wrong in the fields that it comes from. */
interface ReadFirmware {
  readonly body: FirmwareInput | null;
  readonly faults: Partial<Record<keyof TypedFirmware, string>>;
}

/** Reads firmware as it is typed. */
export function readFirmware(typed: TypedFirmware, content: { size: number; sha256: string }): ReadFirmware {
  const faults: Partial<Record<keyof TypedFirmware, string>> = {};
  const given = Object.fromEntries(
    Object.entries(typed)
      .map(([name, text]) => [name, text.trim()])
      .filter(([, text]) => text !== ""),
  );
  const { requires = "", ...texts } = given;
  const parsed = parseConditionText(requires);
  if ("error" in parsed) faults.requires = describeTextError(parsed.error);
  else if (requires !== "") texts.requires = parsed.condition;
  const { data, error } = FirmwareInput.safeParse({ ...texts, ...content });
  for (const { path, message } of error?.issues ?? []) {
    const field = path[0] as keyof TypedFirmware;
    faults[field] ??= typed[field] === "" ? "It is needed." : message;
  }
  return { body: Object.keys(faults).length === 0 ? (data ?? null) : null, faults };
}

/** Name and version in the name of a file, such as `pump-1.4.0.bin`; the version is empty where there is none. */
export function nameAndVersion(fileName: string): Pick<TypedFirmware, "name" | "version"> {
  const base = fileName.replace(/\.(bin|zip|img|hex|fw|elf|gz|swu|mender|uf2)$/i, "");
  const [, name = base, version = ""] = /^(.+?)[-_ ]v?(\d[\w.+-]*)$/i.exec(base) ?? [];
  return { name, version };
}

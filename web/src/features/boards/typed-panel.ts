import { BoardInput, type BoardPanel } from "@devmesh/contracts/model/board";
import {
  describeTextError,
  parseConditionText,
  printConditionText,
} from "@devmesh/contracts/model/condition-text";
import { durationAsTyped, typedDuration } from "../../components/typed-duration.ts";
import { faultsOf, type ReadForm, violationsIn } from "../../components/use-checked-form.ts";
import type { DeviceChoice } from "../data/device-choice.ts";
import type { PanelPlace } from "./board-layout.ts";

/** A panel as it is typed. */
export interface TypedPanel {
  readonly kind: BoardPanel["kind"];
  /** Empty for what it shows. */
  readonly title: string;
  readonly devices: "where" | "ids";
  /** A condition as text; empty for all. */
  readonly where: string;
  readonly ids: string[];
  readonly topic: string;
  /** JSON pointer; empty for the whole message. */
  readonly pointer: string;
  readonly fn: BoardPanel["fn"];
  /** A duration. */
  readonly range: string;
}

export const emptyPanel: TypedPanel = {
  kind: "chart",
  title: "",
  devices: "where",
  where: "",
  ids: [],
  topic: "",
  pointer: "",
  fn: "avg",
  range: "24 h",
};

/** A panel as it is typed. */
export function panelAsTyped({
  kind,
  title = "",
  where,
  device_ids,
  range,
  ...panel
}: BoardPanel): TypedPanel {
  const { topic, pointer, fn } = panel;
  return {
    kind,
    title,
    devices: device_ids === undefined ? "where" : "ids",
    where: printConditionText(where ?? {}),
    ids: [...(device_ids ?? [])],
    topic,
    pointer,
    fn,
    range: durationAsTyped(range),
  };
}

/** The devices as they are typed; null while the condition is none. */
export function typedChoice({ devices, where, ids }: TypedPanel): DeviceChoice | null {
  if (devices === "ids") return ids.length === 0 ? null : { device_ids: ids };
  const parsed = parseConditionText(where);
  return "condition" in parsed ? { where: parsed.condition } : null;
}

/** Reads a panel as it is typed, for a place on a board. */
export function readPanel(typed: TypedPanel, { x, y, w, h }: PanelPlace): ReadForm<TypedPanel, BoardPanel> {
  const { kind, title, devices, where, ids, topic, pointer, fn, range } = typed;
  const condition = parseConditionText(where);
  const { data, error } = BoardInput.safeParse({
    name: "any",
    panels: [
      {
        kind,
        ...(title.trim() !== "" && { title: title.trim() }),
        ...(devices === "ids"
          ? { device_ids: ids }
          : { where: "condition" in condition ? condition.condition : {} }),
        topic: topic.trim(),
        pointer: pointer.trim(),
        fn,
        range: typedDuration(range),
        ...{ x, y, w, h },
      },
    ],
  });
  const faults = error === undefined ? {} : faultsOf<TypedPanel>(violationsIn(error), panelField);
  if (devices === "where" && "error" in condition) faults.where = describeTextError(condition.error);
  if (topic.trim() === "") faults.topic = "Enter a topic.";
  const panel = data?.panels[0];
  return { body: panel === undefined || Object.keys(faults).length > 0 ? null : panel, faults };
}

/** The field that a member of a board's first panel comes from. */
export function panelField(pointer: string): keyof TypedPanel & string {
  const member = pointer.split("/")[3] ?? "";
  if (member === "device_ids") return "ids";
  return member in emptyPanel ? (member as keyof TypedPanel) : "topic";
}

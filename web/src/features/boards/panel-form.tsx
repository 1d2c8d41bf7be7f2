import type { BoardPanel } from "@devmesh/contracts/model/board";
import { seriesFunctions } from "@devmesh/contracts/model/series";
import { Autocomplete, Group, NativeSelect, SegmentedControl, TagsInput, TextInput } from "@mantine/core";
import { useDebouncedValue } from "@mantine/hooks";
import { FormDialog } from "../../components/form-dialog.tsx";
import { useCheckedForm } from "../../components/use-checked-form.ts";
import { durationChoices } from "../data/chart-ranges.ts";
import { useChosenDevices, useSeriesOfDevices } from "../data/device-choice.ts";
import { freePlace, type PanelPlace } from "./board-layout.ts";
import { functionNames, rangeText } from "./panel-words.ts";
import {
  emptyPanel,
  panelAsTyped,
  panelField,
  readPanel,
  type TypedPanel,
  typedChoice,
} from "./typed-panel.ts";

/** Ranges that are offered; others are typed. */
const offeredRanges = durationChoices.map(({ value }) => rangeText(value));

/** Pause in typing after which devices are searched, in milliseconds. */
const typingMs = 400;

const idle = { isPending: false, error: null };
const plain = { autoComplete: "off", spellCheck: false } as const;

/** Properties of {@link PanelForm}. */
interface PanelFormProps {
  /** The panel to be changed; null for a new one. */
  readonly panel: BoardPanel | null;
  /** All panels of the board, which leave places for a new one. */
  readonly panels: readonly BoardPanel[];
  readonly onSave: (panel: BoardPanel) => void;
  readonly onClose: () => void;
}

/** Chooses what a panel shows: which numbers of which devices, and how. */
export function PanelForm({ panel, panels, onSave, onClose }: PanelFormProps) {
  const placeOf = (kind: BoardPanel["kind"]): PanelPlace => panel ?? freePlace(panels, kind) ?? noPlace;
  const { values, field, submit } = useCheckedForm({
    initialValues: panel === null ? emptyPanel : panelAsTyped(panel),
    read: (typed: TypedPanel) => readPanel(typed, placeOf(typed.kind)),
    fieldOf: panelField,
    error: null,
  });
  const [searched] = useDebouncedValue(values, typingMs);
  const choice = typedChoice(searched);
  const devices = useChosenDevices(choice ?? {}, choice !== null);
  const series = useSeriesOfDevices(devices) ?? [];
  const topics = [...new Set(series.map(({ topic }) => topic))];
  const pointers = series.filter(({ topic }) => topic === values.topic.trim()).map(({ pointer }) => pointer);
  return (
    <FormDialog
      title={panel === null ? "Add a panel" : "Edit the panel"}
      noValidate
      action={panel === null ? "Add" : "Save"}
      onSubmit={() =>
        submit((made) => {
          onSave(made);
          onClose();
        })
      }
      work={idle}
      failure=""
      result={null}
      onClose={onClose}
    >
      <SegmentedControl
        aria-label="Kind of panel"
        fullWidth
        data={[
          { value: "chart", label: "Chart, a line for each device" },
          { value: "value", label: "One value" },
        ]}
        {...field("kind")}
      />
      <SegmentedControl
        aria-label="How devices are chosen"
        data={[
          { value: "where", label: "By a condition" },
          { value: "ids", label: "By their ids" },
        ]}
        {...field("devices")}
      />
      {values.devices === "where" ? (
        <TextInput
          label="Devices"
          description="As in their list, such as label:freezer; empty for all. At most 100."
          {...plain}
          {...field("where", { eager: values.where !== "" })}
          data-autofocus
        />
      ) : (
        <TagsInput label="Devices" description="Ids; press Enter after each." {...plain} {...field("ids")} />
      )}
      <Group grow align="start">
        <Autocomplete
          label="Topic"
          placeholder="temp"
          data={topics}
          required
          {...plain}
          {...field("topic")}
        />
        <Autocomplete
          label="Pointer into the message"
          placeholder="the whole message"
          data={pointers.filter((pointer) => pointer !== "")}
          {...plain}
          {...field("pointer")}
        />
      </Group>
      <Group grow align="start">
        <NativeSelect
          label="Number"
          data={seriesFunctions.map((value) => ({ value, label: functionNames[value] }))}
          {...field("fn")}
        />
        <Autocomplete label="Of the last" data={offeredRanges} {...plain} {...field("range")} />
      </Group>
      <TextInput
        label="Title"
        description="Optional; else it is named by what it shows."
        maxLength={80}
        autoComplete="off"
        {...field("title")}
      />
    </FormDialog>
  );
}

/** Of a board that is full, which the server refuses. */
const noPlace: PanelPlace = { x: 0, y: 399, w: 1, h: 1 };

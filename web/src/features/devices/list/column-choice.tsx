import { Autocomplete, Button, Checkbox, Popover, Stack } from "@mantine/core";
import { useDisclosure } from "@mantine/hooks";
import { type ComponentPropsWithoutRef, cloneElement, type ReactElement, useState } from "react";
import { useApi } from "../../../api/api-context.tsx";
import { queryKeys } from "../../../api/query-keys.ts";
import { useReading } from "../../../api/use-reading.ts";
import { shadowValues } from "../shared/shadow-values.ts";
import { builtInColumns, type DeviceColumn, isReportedPointer, mostColumns } from "./device-columns.ts";

/** What {@link ColumnChoice} shows and changes. */
export interface ColumnChoiceProps {
  readonly columns: readonly DeviceColumn[];
  /** A device of the list, whose reported values are suggested; null for none. */
  readonly example: string | null;
  readonly onChange: (names: readonly string[]) => void;
}

/**
 * Which columns the list has: those of each device, and any value that devices report. Open when it is first shown;
 * `children` is its button.
 */
export function ColumnChoice({
  columns,
  example,
  onChange,
  children,
}: ColumnChoiceProps & { readonly children: ReactElement<ComponentPropsWithoutRef<"button">> }) {
  const api = useApi();
  const [opened, menu] = useDisclosure(true);
  const [typed, setTyped] = useState("");
  const { data: device } = useReading({
    queryKey: queryKeys.device(example ?? ""),
    queryFn: ({ signal }) => api.call("readDevice", { params: { id: example ?? "" }, signal }),
    enabled: opened && example !== null,
  });
  const names = columns.map(({ name }) => name);
  const choices = [...builtInColumns, ...columns.filter(({ name }) => name.startsWith("/"))];
  const reported =
    device === undefined
      ? []
      : shadowValues({}, device.shadow.state.reported)
          .map(({ pointer }) => pointer)
          .filter((pointer) => isReportedPointer(pointer) && !names.includes(pointer));
  const add = (pointer: string) => {
    setTyped("");
    onChange([...names, pointer]);
  };
  const isFull = names.length >= mostColumns;
  return (
    <Popover opened={opened} onChange={menu.toggle} position="bottom-end" width={260} trapFocus returnFocus>
      <Popover.Target>
        {cloneElement(children, { "aria-expanded": opened, onClick: menu.toggle })}
      </Popover.Target>
      <Popover.Dropdown aria-label="Columns of the list" p={12}>
        <Stack gap={8}>
          {choices.map(({ name, label }) => (
            <Checkbox
              key={name}
              label={label}
              checked={names.includes(name)}
              disabled={isFull && !names.includes(name)}
              onChange={(event) =>
                onChange(
                  event.currentTarget.checked ? [...names, name] : names.filter((each) => each !== name),
                )
              }
            />
          ))}
          <form
            onSubmit={(event) => {
              event.preventDefault();
              if (isReportedPointer(typed) && !isFull) add(typed);
            }}
          >
            <Autocomplete
              size="xs"
              label="A reported value"
              description="Its JSON pointer, as in /app/mode."
              placeholder="/app/mode"
              data={reported}
              comboboxProps={{ withinPortal: false }}
              autoComplete="off"
              spellCheck={false}
              value={typed}
              onChange={setTyped}
              onOptionSubmit={add}
            />
            <Button
              type="submit"
              size="xs"
              variant="default"
              mt={8}
              disabled={!isReportedPointer(typed) || isFull}
            >
              Add the column
            </Button>
          </form>
        </Stack>
      </Popover.Dropdown>
    </Popover>
  );
}

import { Kbd, Modal } from "@mantine/core";
import { useDebouncedValue } from "@mantine/hooks";
import {
  Bookmark,
  ChartLine,
  Copy,
  KeyRound,
  type LucideIcon,
  Search,
  SlidersHorizontal,
  SquareTerminal,
} from "lucide-react";
import { type KeyboardEvent, useId, useState } from "react";
import { useLocation } from "wouter";
import { useApi } from "../api/api-context.tsx";
import { queryKeys } from "../api/query-keys.ts";
import { useReading } from "../api/use-reading.ts";
import { StateDot } from "../components/state.tsx";
import { showToast } from "../components/toast.tsx";
import { addressOf, useSavedViews } from "../features/devices/shared/saved-views.ts";
import styles from "./palette.module.css";
import { tabs } from "./tabs.ts";

/** Devices that are offered. */
const mostDevices = 6;

/** Saved views that are offered. */
const mostViews = 6;

/** Pause in typing after which devices are searched, in milliseconds. */
const typingMs = 150;

interface PaletteEntry {
  readonly key: string;
  readonly label: string;
  /** After the label, in grey. */
  readonly detail?: string;
  readonly online?: boolean;
  readonly Icon?: LucideIcon;
  readonly run: () => void;
}

interface PaletteGroup {
  readonly heading: string;
  readonly entries: readonly PaletteEntry[];
}

/** Finds devices by id, name and label, actions on the first of them, and views. */
export function Palette({ onClose }: { readonly onClose: () => void }) {
  const [typed, setTyped] = useState("");
  const [at, setAt] = useState(0);
  const listId = useId();
  const groups = useGroups(typed.trim());
  const entries = groups.flatMap(({ entries: each }) => each);
  const active = Math.min(at, entries.length - 1);
  const run = (entry: PaletteEntry | undefined) => {
    if (entry === undefined) return;
    onClose();
    entry.run();
  };
  const onKeyDown = (event: KeyboardEvent) => {
    const by = event.key === "ArrowDown" ? 1 : event.key === "ArrowUp" ? -1 : 0;
    if (by !== 0) {
      event.preventDefault();
      const next = (active + by + entries.length) % Math.max(1, entries.length);
      setAt(next);
      document.getElementById(`${listId}-${next}`)?.scrollIntoView({ block: "nearest" });
    } else if (event.key === "Enter") {
      event.preventDefault();
      run(entries[active]);
    }
  };
  let index = -1;
  return (
    <Modal
      opened
      onClose={onClose}
      withCloseButton={false}
      size={620}
      padding={0}
      centered={false}
      yOffset="12dvh"
      aria-label="Search"
      transitionProps={{ duration: 120 }}
      styles={{ body: { padding: 0 } }}
    >
      <div className={styles.field}>
        <Search size={18} aria-hidden="true" />
        <input
          type="text"
          role="combobox"
          aria-label="Search devices, views and actions"
          aria-expanded="true"
          aria-controls={listId}
          aria-activedescendant={active < 0 ? undefined : `${listId}-${active}`}
          placeholder="Search devices, views and actions"
          autoComplete="off"
          spellCheck={false}
          data-autofocus
          value={typed}
          onChange={(event) => {
            setTyped(event.currentTarget.value);
            setAt(0);
          }}
          onKeyDown={onKeyDown}
        />
        <Kbd size="xs">Esc</Kbd>
      </div>
      <div id={listId} role="listbox" aria-label="Results" className={styles.list}>
        {entries.length === 0 && <p className={styles.none}>Nothing is found.</p>}
        {groups.map(({ heading, entries: each }) => (
          // biome-ignore lint/a11y/useSemanticElements: a fieldset is none of a listbox
          <div key={heading} role="group" aria-label={heading}>
            <div className={styles.heading} aria-hidden="true">
              {heading}
            </div>
            {each.map((entry) => {
              index += 1;
              const own = index;
              return (
                // biome-ignore lint/a11y/useKeyWithClickEvents: the field has the keys
                <div
                  key={entry.key}
                  id={`${listId}-${own}`}
                  role="option"
                  tabIndex={-1}
                  aria-selected={own === active}
                  className={styles.entry}
                  onMouseMove={() => setAt(own)}
                  onClick={() => run(entry)}
                >
                  <span className={styles.icon}>
                    {entry.Icon === undefined ? (
                      <StateDot look={entry.online ? "good" : "idle"} />
                    ) : (
                      <entry.Icon size={16} aria-hidden="true" />
                    )}
                  </span>
                  <span className={styles.label}>{entry.label}</span>
                  {entry.detail !== undefined && <code className={styles.detail}>{entry.detail}</code>}
                  {own === active && <Kbd size="xs">↵</Kbd>}
                </div>
              );
            })}
          </div>
        ))}
      </div>
      <div className={styles.foot} aria-hidden="true">
        <Kbd size="xs">↑</Kbd>
        <Kbd size="xs">↓</Kbd> move <Kbd size="xs">↵</Kbd> open
        <span>
          all shortcuts <Kbd size="xs">?</Kbd>
        </span>
      </div>
    </Modal>
  );
}

function useGroups(typed: string): readonly PaletteGroup[] {
  const api = useApi();
  const [, navigate] = useLocation();
  const views = useSavedViews();
  const [searched] = useDebouncedValue(typed, typingMs);
  const { data: devices = [] } = useReading({
    queryKey: [...queryKeys.foundDevices, searched],
    queryFn: ({ signal }) =>
      api.call("listDevices", { query: { limit: mostDevices, filter: searched }, signal }),
    enabled: searched !== "",
    staleTime: 10_000,
    placeholderData: (before) => before,
  });
  const found = typed === "" ? [] : devices;
  const first = found[0];
  const open = (path: string) => () => navigate(path);
  const matches = (label: string) => label.toLowerCase().includes(typed.toLowerCase());
  const actions: readonly PaletteEntry[] =
    first === undefined
      ? []
      : [
          {
            key: "call",
            label: "Call a function",
            Icon: SquareTerminal,
            run: open(`/devices/${first.id}/rpc`),
          },
          {
            key: "desired",
            label: "Set desired state",
            Icon: SlidersHorizontal,
            run: open(`/devices/${first.id}/shadow`),
          },
          { key: "data", label: "Charts", Icon: ChartLine, run: open(`/devices/${first.id}/data`) },
          {
            key: "credentials",
            label: "Credentials",
            Icon: KeyRound,
            run: open(`/devices/${first.id}/credentials`),
          },
          {
            key: "copy",
            label: "Copy the id",
            Icon: Copy,
            run: () =>
              void navigator.clipboard
                ?.writeText(first.id)
                .then(() => showToast({ title: `${first.id} is copied` })),
          },
        ];
  return [
    {
      heading: "Devices",
      entries: found.map(({ id, name, online }) => ({
        key: id,
        label: name ?? id,
        ...(name !== null && { detail: id }),
        online,
        run: open(`/devices/${id}`),
      })),
    },
    { heading: first === undefined ? "" : `Actions on ${first.id}`, entries: actions },
    {
      heading: "Saved views",
      entries: views
        .filter(({ name }) => matches(name))
        .slice(0, mostViews)
        .map((view) => ({ key: view.id, label: view.name, Icon: Bookmark, run: open(addressOf(view)) })),
    },
    {
      heading: "Go to",
      entries: tabs
        .filter(({ label }) => matches(label))
        .map(({ label, path, Icon }) => ({ key: path, label, Icon, run: open(path) })),
    },
  ].filter(({ entries }) => entries.length > 0);
}

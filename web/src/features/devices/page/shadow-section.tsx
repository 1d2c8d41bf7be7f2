import { isJsonObject, type JsonObject } from "@devmesh/contracts/model/json";
import { Button, Switch } from "@mantine/core";
import { type KeyboardEvent, useEffect, useMemo, useRef, useState } from "react";
import { describeFault, parseJson } from "../../../components/parse-json.ts";
import { RelativeTime } from "../../../components/relative-time.tsx";
import { StateBadge } from "../../../components/state.tsx";
import { leafChanges, mergePatchBetween } from "../shared/json-changes.ts";
import { DeltaMetadata } from "./delta-metadata.tsx";
import type { SectionProps } from "./section.ts";
import {
  countDifferences,
  desiredText,
  type LineStatus,
  type ShadowLine,
  shadowLines,
} from "./shadow-lines.ts";
import styles from "./shadow-section.module.css";
import { useDeviceDraft } from "./use-device-draft.tsx";

/** Edits the desired state beside the reported one, line by line. */
export function ShadowSection({ device }: SectionProps) {
  const { desired: current, reported } = device.shadow.state;
  const { form, isDirty, save, buttons, alerts } = useDeviceDraft<JsonObject, { text: string }>({
    device,
    what: "the desired state",
    read: ({ shadow }) => shadow.state.desired,
    format: (desired) => ({ text: desiredText(shadowLines(desired, reported)) }),
    parse: ({ text }) => objectIn(text),
    validate: { text: wrongText },
    patch: (from, to) => ({ shadow: { state: { desired: mergePatchBetween(from, to) } } }),
  });
  const { text } = form.values;
  const edited = useMemo(() => objectIn(text), [text]);
  const lines = useMemo(() => shadowLines(edited ?? current, reported), [edited, current, reported]);
  const aligned = desiredText(lines);
  const editor = useRef<HTMLTextAreaElement>(null);
  // Lines that are reported from now on move the others, except under the hands of the user.
  // biome-ignore lint/correctness/useExhaustiveDependencies: the form has a new identity each time
  useEffect(() => {
    if (!isDirty && text !== aligned && document.activeElement !== editor.current)
      form.setFieldValue("text", aligned);
  }, [isDirty, text, aligned]);

  const differences = countDifferences(lines);
  const unsaved = useMemo(
    () => new Set(leafChanges(current, current, edited ?? current).map(({ pointer }) => pathOf(pointer))),
    [current, edited],
  );
  const patch = isDirty && edited !== null ? mergePatchBetween(current, edited) : null;
  const [narrowed, setNarrowed] = useState(false);
  const fault = form.errors.text;
  const saveByKey = (event: KeyboardEvent) => {
    if (event.key !== "s" || !(event.metaKey || event.ctrlKey)) return;
    event.preventDefault();
    save?.();
  };
  return (
    <div className={styles.section}>
      {alerts}
      {/* biome-ignore lint/a11y/noStaticElementInteractions: the key saves wherever the focus is in it */}
      <div className={styles.card} onKeyDown={saveByKey}>
        <div className={styles.toolbar}>
          <span role="status">
            {differences === 0 ? (
              <StateBadge look="good">In sync</StateBadge>
            ) : (
              <StateBadge look="warn">
                {differences === 1 ? "1 value differs" : `${differences} values differ`}
              </StateBadge>
            )}
          </span>
          <span className={styles.note}>
            version {device.shadow.version}, changed{" "}
            <RelativeTime at={new Date(device.shadow.timestamp).toISOString()} />
          </span>
          <DeltaMetadata device={device} />
          <Switch
            label="Only differences"
            checked={narrowed}
            onChange={(event) => setNarrowed(event.currentTarget.checked)}
          />
        </div>
        <div className={styles.sides}>
          <div className={styles.side}>
            <div className={styles.heading}>
              <label htmlFor={`desired-${device.id}`}>Desired</label>
              <span className={styles.note}>what you ask for</span>
              {isDirty && (
                <StateBadge look="info">{edited === null ? "unsaved" : `${unsaved.size} unsaved`}</StateBadge>
              )}
            </div>
            {narrowed ? (
              <Lines lines={lines.filter(isDifferent)} side="desired" unsaved={unsaved} />
            ) : (
              <div className={styles.editor}>
                <Lines
                  lines={withoutEnds(text) === aligned ? lines : unalignedLines(text)}
                  side="desired"
                  unsaved={unsaved}
                  isBackdrop
                />
                <textarea
                  ref={editor}
                  id={`desired-${device.id}`}
                  className={styles.text}
                  spellCheck={false}
                  autoComplete="off"
                  wrap="off"
                  rows={text.split("\n").length}
                  aria-invalid={fault !== undefined}
                  {...form.getInputProps("text", { withError: false })}
                />
              </div>
            )}
          </div>
          <div className={styles.side} data-reported>
            <div className={styles.heading}>
              <span id={`reported-${device.id}`}>Reported</span>
              <span className={styles.note}>what the device has</span>
            </div>
            {/* biome-ignore lint/a11y/noNoninteractiveTabindex: the keyboard scrolls it */}
            <section className={styles.scroll} aria-labelledby={`reported-${device.id}`} tabIndex={0}>
              <Lines lines={narrowed ? lines.filter(isDifferent) : lines} side="reported" />
            </section>
          </div>
        </div>
        <div className={styles.foot}>
          {fault !== undefined ? (
            <span className={styles.fault} role="alert">
              {fault}
            </span>
          ) : patch !== null ? (
            <span className={styles.patch}>
              Saves a merge patch: <code>{JSON.stringify(patch)}</code>
            </span>
          ) : (
            <span className={styles.note}>Set a member to null to remove it.</span>
          )}
          <Button
            variant="default"
            disabled={edited === null || text === aligned}
            onClick={() => form.setFieldValue("text", aligned)}
          >
            Format
          </Button>
          {buttons}
        </div>
      </div>
    </div>
  );
}

interface LinesProps {
  readonly lines: readonly ShadowLine[];
  readonly side: "desired" | "reported";
  /** Paths of the leaves with edits. */
  readonly unsaved?: ReadonlySet<string>;
  /** The text itself is in the editor above it. */
  readonly isBackdrop?: boolean;
}

/** One side of the comparison: numbers, marks, and the text. */
function Lines({ lines, side, unsaved, isBackdrop = false }: LinesProps) {
  let count = 0;
  return (
    <div className={styles.lines} aria-hidden={isBackdrop || undefined}>
      {lines.map((line, at) => {
        const text = line[side];
        if (text !== null) count += 1;
        const status = statusOf(line, side);
        return (
          <div
            // biome-ignore lint/suspicious/noArrayIndexKey: lines have no identity but their place
            key={at}
            className={styles.line}
            data-status={status}
            data-gap={text === null || undefined}
            data-unsaved={unsaved?.has(line.path) || undefined}
          >
            <span className={styles.number} aria-hidden="true">
              {text === null ? "" : count}
            </span>
            <span className={styles.mark} aria-hidden="true">
              {text === null ? "" : marks[status]}
            </span>
            {text === null ? (
              <span className={styles.absent}>{lines[at - 1]?.[side] === null ? "" : absent[side]}</span>
            ) : (
              !isBackdrop && <span className={styles.code}>{text}</span>
            )}
          </div>
        );
      })}
    </div>
  );
}

const marks: Readonly<Record<LineStatus, string>> = { same: "", unasked: "", differs: "≠", missing: "+" };
const absent = { desired: "only reported", reported: "not reported" };

/** What only the other side has is no difference of this one. */
function statusOf({ status, path }: ShadowLine, side: LinesProps["side"]): LineStatus {
  if (status === "unasked" || path === "") return "same";
  return status === "missing" && side === "reported" ? "same" : status;
}

function isDifferent({ status, path }: ShadowLine): boolean {
  return path !== "" && (status === "differs" || status === "missing");
}

/** A text without blanks at the ends of its lines. */
function withoutEnds(text: string): string {
  return text.replaceAll(/[ \t]+$/gm, "");
}

/** Lines of a text that is not formatted, which have no counterparts. */
function unalignedLines(text: string): readonly ShadowLine[] {
  return text.split("\n").map((line) => ({ desired: line, reported: null, status: "same", path: "" }));
}

/** A JSON pointer as the path of a leaf. */
function pathOf(pointer: string): string {
  return pointer
    .slice(1)
    .split("/")
    .map((token) => token.replaceAll("~1", "/").replaceAll("~0", "~"))
    .join(".");
}

function objectIn(text: string): JsonObject | null {
  const parsed = parseJson(text);
  return parsed.kind === "value" && isJsonObject(parsed.value) ? parsed.value : null;
}

function wrongText(text: string): string | null {
  const parsed = parseJson(text);
  if (parsed.kind === "fault") return describeFault(parsed.fault);
  return isJsonObject(parsed.value) ? null : "The desired state is a JSON object.";
}

import { Autocomplete, Button, TextInput } from "@mantine/core";
import { Check, X } from "lucide-react";
import { useState } from "react";
import { Card, MoreLink } from "../../../components/card.tsx";
import { durationText } from "../../../components/number-text.ts";
import { RelativeTime } from "../../../components/relative-time.tsx";
import { useCallForm } from "../shared/call-form.tsx";
import styles from "./call-card.module.css";
import { useDeviceCalls } from "./device-calls.ts";
import type { SectionProps } from "./section.ts";

/** Calls a function in a line, and shows the last answer. */
export function CallCard({ device }: SectionProps) {
  const { form, ready } = useCallForm();
  const [focused, setFocused] = useState(false);
  const { calls, functions, calling } = useDeviceCalls(device, focused);
  const last = calls[0];
  return (
    <Card title="Call" actions={<MoreLink href={`/devices/${device.id}/rpc`}>All calls</MoreLink>}>
      <form
        className={styles.form}
        onSubmit={form.onSubmit((call) => {
          if (ready && !calling.isPending) calling.mutate(call);
        })}
      >
        <Autocomplete
          aria-label="Function to call"
          onFocus={() => setFocused(true)}
          placeholder="Function"
          data={[...new Set(functions.data)]}
          comboboxProps={{ width: 220, position: "bottom-start" }}
          autoComplete="off"
          spellCheck={false}
          {...form.getInputProps("func")}
          error={form.errors.func !== undefined}
          onChange={(func) => form.setFieldValue("func", func.trim())}
        />
        <TextInput
          aria-label="Parameters as JSON"
          placeholder="Parameters"
          autoComplete="off"
          spellCheck={false}
          {...form.getInputProps("params")}
          error={form.errors.params !== undefined}
        />
        <Button type="submit" loading={calling.isPending} disabled={!ready || !device.online}>
          Call
        </Button>
      </form>
      {Object.values(form.errors).map((error) => (
        <p key={String(error)} className={styles.error} role="alert">
          {error}
        </p>
      ))}
      {last === undefined ? (
        !device.online && <p className={styles.note}>It is offline: a call would fail.</p>
      ) : (
        <p className={styles.answer} role="status">
          {last.outcome.kind === "answered" ? (
            <Check size={14} className={styles.good} aria-label="answered" />
          ) : (
            <X size={14} className={styles.bad} aria-label="failed" />
          )}
          <code>{last.func}</code>
          <code className={styles.result}>
            {last.outcome.kind === "answered" ? JSON.stringify(last.outcome.result) : last.outcome.title}
          </code>
          <span>
            {durationText(Math.round(last.tookMs))} ·{" "}
            <RelativeTime at={new Date(last.startedAt).toISOString()} />
          </span>
        </p>
      )}
    </Card>
  );
}

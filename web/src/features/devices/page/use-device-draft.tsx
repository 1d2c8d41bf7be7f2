import type { Device, DevicePatch } from "@devmesh/contracts/model/device";
import { JsonValue } from "@devmesh/contracts/model/json";
import { Button } from "@mantine/core";
import { type UseFormInput, type UseFormReturnType, useForm } from "@mantine/form";
import { useMutation, useQueryClient } from "@tanstack/react-query";
import { type ReactNode, useEffect, useState } from "react";
import { useApi } from "../../../api/api-context.tsx";
import { queryKeys } from "../../../api/query-keys.ts";
import { Failure } from "../../../components/failure.tsx";
import { equalJson, leafChanges } from "../shared/json-changes.ts";
import { patchDevice } from "../shared/patch-device.ts";
import { ChangeConflict } from "./change-conflict.tsx";

/** Options of {@link useDeviceDraft}: the value T of a device, edited as the values V of a form. */
interface DraftOptions<T, V extends Record<string, unknown>> {
  readonly device: Device;
  /** The edited value in messages, as in "the ACL". */
  readonly what: string;
  readonly read: (device: Device) => T;
  readonly format: (value: T) => V;
  /** Null if the form has no valid value. */
  readonly parse: (values: V) => T | null;
  readonly validate: UseFormInput<V>["validate"];
  /** The patch that changes `from` to `to`. */
  readonly patch: (from: T, to: T) => DevicePatch;
}

/** A value of a device while it is edited. */
interface DeviceDraft<T, V extends Record<string, unknown>> {
  readonly form: UseFormReturnType<V>;
  /** Null if the form has no valid value. */
  readonly value: T | null;
  readonly isDirty: boolean;
  /** Null while there is nothing to save, or it is not valid. */
  readonly save: (() => void) | null;
  /** Saves or discards the edits. */
  readonly buttons: ReactNode;
  /** Conflicts and errors, to be shown above the form. */
  readonly alerts: ReactNode;
}

/**
 * Edits a value of a device, and saves it only over the value that the user saw: other changes are shown as a
 * conflict.
 */
export function useDeviceDraft<T, V extends Record<string, unknown>>(
  options: DraftOptions<T, V>,
): DeviceDraft<T, V> {
  const { device, what, read, format, parse, validate, patch } = options;
  const api = useApi();
  const queries = useQueryClient();
  const current = read(device);
  const draftKey = draftKeyOf(device.id, what);
  const [kept] = useState(() => keptDraft<T, V>(draftKey));
  const [base, setBase] = useState(kept?.base ?? current);
  const form = useForm<V>({
    initialValues: kept?.values ?? format(current),
    ...(validate !== undefined && { validate }),
    validateInputOnChange: true,
  });
  const value = parse(form.values);
  const isDirty = value === null || !same(value, base);
  const isOutdated = !same(current, base);
  const isConflict = isOutdated && isDirty && (value === null || !same(value, current));

  // biome-ignore lint/correctness/useExhaustiveDependencies: once, as text that was typed before may be wrong
  useEffect(() => {
    if (kept !== null) form.validate();
  }, []);
  useEffect(() => {
    keepDraft(draftKey, isDirty ? { base, values: form.values } : null);
  }, [isDirty, draftKey, base, form.values]);

  const begin = (from: T) => {
    setBase(from);
    form.setValues(format(from));
    form.clearErrors();
  };
  // A value without edits follows the device; the frame of an own write may arrive before its response.
  // biome-ignore lint/correctness/useExhaustiveDependencies: `begin` is a new function each time
  useEffect(() => {
    if (isOutdated && !isConflict) begin(current);
  }, [isOutdated, isConflict, current]);

  const saving = useMutation({
    mutationFn: ({ from, to }: { readonly from: T; readonly to: T }) =>
      patchDevice(api, device.id, (latest) => (same(read(latest), from) ? patch(from, to) : null)),
    onSuccess: ({ kind, device: changed }) => {
      if (kind === "saved") begin(read(changed));
      queries.setQueryData(queryKeys.device(device.id), changed);
    },
  });
  const saveOver = (from: T) => value !== null && saving.mutate({ from, to: value });
  const canSave = isDirty && value !== null && !isOutdated;
  return {
    form,
    value,
    isDirty,
    save: canSave && !saving.isPending ? () => saveOver(base) : null,
    buttons: (
      <>
        <Button variant="default" disabled={!isDirty} onClick={() => begin(current)}>
          Discard
        </Button>
        <Button disabled={!canSave} loading={saving.isPending} onClick={() => saveOver(base)}>
          Save
        </Button>
      </>
    ),
    alerts: (
      <>
        {isConflict && (
          <ChangeConflict
            what={what}
            changes={value === null ? null : leafChanges(jsonOf(base), jsonOf(current), jsonOf(value))}
            saving={saving.isPending}
            onTakeTheirs={() => begin(current)}
            onOverwrite={value === null ? null : () => saveOver(current)}
          />
        )}
        <Failure error={saving.error} title={`${what.replace("the", "The")} was not saved`} />
      </>
    ),
  };
}

/** What the user edits, and the value that it began with. */
interface KeptDraft<T, V> {
  readonly base: T;
  readonly values: V;
}

/** Whether the user has edited a value of a device and not saved it; `what` is the draft's. */
export function hasDraft(id: string, what: string): boolean {
  return sessionStorage.getItem(draftKeyOf(id, what)) !== null;
}

/** Name of a draft in the storage of the browser's tab, where it outlasts a navigation and a reload. */
function draftKeyOf(id: string, what: string): string {
  return `devmesh.draft:${id}:${what}`;
}

function keptDraft<T, V>(key: string): KeptDraft<T, V> | null {
  return JSON.parse(sessionStorage.getItem(key) ?? "null");
}

function keepDraft(key: string, draft: KeptDraft<unknown, unknown> | null): void {
  sessionStorage.removeItem(key);
  if (draft === null) return;
  try {
    sessionStorage.setItem(key, JSON.stringify(draft));
  } catch {
    // The storage is full: the draft ends with its form.
  }
}

function jsonOf(value: unknown) {
  return JsonValue.parse(value);
}

function same(one: unknown, other: unknown): boolean {
  return equalJson(jsonOf(one), jsonOf(other));
}

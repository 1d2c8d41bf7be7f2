import type { Device } from "@devmesh/contracts/model/device";
import type { DeviceCondition } from "@devmesh/contracts/model/device-condition";
import type { Json } from "@devmesh/contracts/model/json";
import { membersOf } from "@devmesh/contracts/model/json-pointer";
import { valueLabelOf } from "@devmesh/contracts/model/value-labels";
import { useQueries } from "@tanstack/react-query";
import { useMemo } from "react";
import { useApi } from "../../api/api-context.tsx";
import { queryKeys } from "../../api/query-keys.ts";
import { useReading } from "../../api/use-reading.ts";
import type { PlacedSeries } from "./series-sizes.ts";
import type { NumericSeries } from "./topic-numbers.ts";

/** Devices whose numbers are shown together: those that meet a condition, or these. */
export interface DeviceChoice {
  readonly where?: DeviceCondition | undefined;
  readonly device_ids?: readonly string[] | undefined;
}

/** Where a number is in the messages of a device. */
export interface SeriesPlace {
  /** Below `db/<device id>/`. */
  readonly topic: string;
  readonly pointer: string;
}

/** What is known of a device that is chosen. */
export interface ChosenDevice {
  readonly id: string;
  readonly name: string | null;
  readonly tags: { readonly [tag: string]: Json };
}

/** Devices that are asked which series they have. */
const mostAsked = 5;

/** Devices that are read for their names. */
const mostNamed = 100;

/** How often devices that meet a condition are read again, in milliseconds: which they are may change at any time. */
const readAgainMs = 60_000;

/** The chosen devices with names and tags; undefined before they are read, and where `enabled` is false. */
export function useChosenDevices(
  { where, device_ids }: DeviceChoice,
  enabled = true,
): readonly ChosenDevice[] | undefined {
  const api = useApi();
  const found = useReading({
    queryKey: [...queryKeys.devicesWhere, where],
    enabled: enabled && where !== undefined,
    refetchInterval: readAgainMs,
    queryFn: ({ signal }) =>
      api.call("listDevices", { query: { limit: mostNamed, ...(where !== undefined && { where }) }, signal }),
  });
  const read = useQueries({
    queries: (device_ids ?? []).slice(0, mostNamed).map((id) => ({
      queryKey: queryKeys.device(id),
      enabled,
      queryFn: ({ signal }: { readonly signal: AbortSignal }) =>
        api.call("readDevice", { params: { id }, signal }),
    })),
    combine: (results) =>
      results.some(({ isPending }) => isPending) ? undefined : results.flatMap(({ data }) => data ?? []),
  });
  const devices = where === undefined ? read : found.error !== null ? none : found.data;
  return useMemo(() => devices?.map(({ id, name, shadow: { tags } }) => ({ id, name, tags })), [devices]);
}

const none: readonly Device[] = [];

/** What people call a device among others: its name, with the id where another one has that, too; else the id. */
export function deviceLabel(devices: readonly ChosenDevice[], id: string): string {
  const name = devices.find((device) => device.id === id)?.name ?? null;
  if (name === null) return id;
  return devices.some((other) => other.name === name && other.id !== id) ? `${name} (${id})` : name;
}

/** The series of devices, named by their ids, that have numbers, as a chart draws them. */
export function placeDevices(
  series: readonly NumericSeries[],
  devices: readonly ChosenDevice[],
  unit: string | undefined,
): readonly PlacedSeries[] {
  return series
    .filter(({ steps }) => steps.length > 0)
    .map((each, place) => ({ series: each, place, unit, label: deviceLabel(devices, each.name) }));
}

/** The unit of a value by the first of the devices that names one. */
export function unitOf(devices: readonly ChosenDevice[], place: SeriesPlace): string | undefined {
  for (const { tags } of devices) {
    const { unit } = valueLabelOf(tags, place);
    if (unit !== undefined) return unit;
  }
  return undefined;
}

/** The series that some of the devices have, by topic and pointer; undefined before they are read. */
export function useSeriesOfDevices(
  devices: readonly ChosenDevice[] | undefined,
): readonly SeriesPlace[] | undefined {
  const api = useApi();
  const places = useQueries({
    queries: (devices ?? []).slice(0, mostAsked).map(({ id }) => ({
      queryKey: queryKeys.deviceSeries(id),
      staleTime: 0,
      queryFn: ({ signal }: { readonly signal: AbortSignal }) =>
        api.call("listSeries", { params: { id }, signal }),
    })),
    combine(results) {
      if (results.some(({ isPending }) => isPending)) return undefined;
      const all = new Map<string, SeriesPlace>();
      for (const { topic, pointer } of results.flatMap(({ data }) => data ?? []))
        all.set(keyOf({ topic, pointer }), { topic, pointer });
      return [...all].sort(([one], [other]) => (one < other ? -1 : 1)).map(([, place]) => place);
    },
  });
  return devices && places;
}

/** Distinguishes the places of a device. */
export function keyOf({ topic, pointer }: SeriesPlace): string {
  return `${topic}#${pointer}`;
}

/** A number as people read it: "celsius of air". */
export function placeName({ topic, pointer }: SeriesPlace): string {
  const member = membersOf(pointer).join(".");
  return member === "" ? topic : `${member} of ${topic}`;
}

import { printConditionText } from "@devmesh/contracts/model/condition-text";
import type { Silence } from "@devmesh/contracts/model/silence";
import type { StateLook } from "../../components/state.tsx";

/** What a silence does at a time, Unix ms. */
export function silenceState({ from, until }: Pick<Silence, "from" | "until">, now: number): SilenceState {
  if (Date.parse(until) <= now) return "ended";
  return Date.parse(from) <= now ? "active" : "planned";
}
type SilenceState = "planned" | "active" | "ended";

export const silenceLooks: Readonly<Record<SilenceState, StateLook>> = {
  planned: "idle",
  active: "info",
  ended: "idle",
};

/** The devices of a silence: "all devices", or the condition. */
export function silencedDevices({ where }: Pick<Silence, "where">): string {
  return printConditionText(where) || "all devices";
}

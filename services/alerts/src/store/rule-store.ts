import type { ChannelInput, RuleInput } from "@devmesh/contracts/model/rule";
import type { Silence } from "@devmesh/contracts/model/silence";

/** A rule as it is stored. */
export interface StoredRule extends Omit<RuleInput, "notify"> {
  readonly id: string;
  readonly notify: readonly string[];
  /** `for` in milliseconds. */
  readonly forMs: number;
  /** One more with each change of what it holds for: alerts of an earlier one clear. */
  readonly epoch: number;
  readonly created_at: number;
  /** 1 at the creation; each change increments it. */
  readonly revision: number;
}

export type StoredChannel = ChannelInput & {
  readonly id: string;
  readonly created_at: number;
  /** When alerts were last sent to it; 0 for never. */
  readonly sent_at: number;
  /** When it last got a message about each storm that lasts, by rule. */
  readonly storms: Readonly<Record<string, number>>;
  /** 1 at the creation; each change increments it, but not what is sent. */
  readonly revision: number;
};

/** A silence as it is stored; times are Unix milliseconds. */
export interface StoredSilence extends Pick<Silence, "id" | "where" | "rule_ids" | "note"> {
  readonly from: number;
  readonly until: number;
  readonly created_at: number;
}

type RowKind = "rules" | "channels" | "silences";

interface IdPage {
  readonly after?: string;
  readonly limit: number;
}

/** Rules, channels and silences, the oldest first. */
export interface RuleStore {
  /** Stores a new rule, unless there are `most`. */
  insertRule(rule: StoredRule, most: number, signal: AbortSignal): Promise<boolean>;
  findRule(id: string, signal: AbortSignal): Promise<StoredRule | null>;
  /** Replaces a rule whose stored revision is one less; false: there is none. */
  changeRule(rule: StoredRule, signal: AbortSignal): Promise<boolean>;
  listRules(page: IdPage, signal: AbortSignal): Promise<StoredRule[]>;
  removeRule(id: string, signal: AbortSignal): Promise<boolean>;
  insertChannel(channel: StoredChannel, most: number, signal: AbortSignal): Promise<boolean>;
  findChannel(id: string, signal: AbortSignal): Promise<StoredChannel | null>;
  /** Replaces a channel whose stored revision is one less, but for `sent_at` and `storms`; false: there is none. */
  changeChannel(channel: StoredChannel, signal: AbortSignal): Promise<boolean>;
  listChannels(page: IdPage, signal: AbortSignal): Promise<StoredChannel[]>;
  /** Notes when alerts were sent to a channel. */
  noteSent(id: string, sent: Pick<StoredChannel, "sent_at" | "storms">, signal: AbortSignal): Promise<void>;
  removeChannel(id: string, signal: AbortSignal): Promise<boolean>;
  /** Stores a new silence, unless there are `most`. */
  insertSilence(silence: StoredSilence, most: number, signal: AbortSignal): Promise<boolean>;
  listSilences(page: IdPage, signal: AbortSignal): Promise<StoredSilence[]>;
  removeSilence(id: string, signal: AbortSignal): Promise<boolean>;
  /** Removes silences that ended before a time. */
  removeEnded(before: number, signal: AbortSignal): Promise<void>;
  /** How many there are of each. */
  count(signal: AbortSignal): Promise<Record<RowKind, number>>;
  /** Corrects what limits count after a death of a replica; to be called about once a minute. */
  correctCounts(signal: AbortSignal): Promise<void>;
  /** Another text after each change of one of them. */
  editionOf(kind: RowKind, signal: AbortSignal): Promise<string>;
}

import { createMongoLimit } from "@devmesh/store/limit.mongodb";
import type { MongoStore } from "@devmesh/store/mongodb";
import type { RuleStore, StoredChannel, StoredRule, StoredSilence } from "./rule-store.ts";

/** `document` is the JSON of the rule: names in a condition could be taken for operators. */
interface RuleRow {
  readonly _id: string;
  readonly revision: number;
  readonly document: string;
}

/** `document` is the JSON of the channel. */
interface ChannelRow extends Pick<StoredChannel, "sent_at" | "storms" | "revision"> {
  readonly _id: string;
  readonly document: string;
}

/** `document` is the JSON of the silence. */
interface SilenceRow extends Pick<StoredSilence, "until"> {
  readonly _id: string;
  readonly document: string;
}

/** Rules, channels and silences in a MongoDB database, which all replicas share. */
export function createMongoRuleStore({ db, run }: Pick<MongoStore, "db" | "run">): RuleStore {
  const rules = db.collection<RuleRow>("rules");
  const channels = db.collection<ChannelRow>("channels");
  const silences = db.collection<SilenceRow>("silences");
  const countOf = (kind: "rules" | "channels" | "silences", signal: AbortSignal) =>
    run(signal, () => db.collection(kind).countDocuments({}, { signal }));
  const limitOf = (name: Parameters<typeof countOf>[0]) =>
    createMongoLimit({ db, run }, { name, countStored: (signal) => countOf(name, signal) });
  const limits = {
    rules: limitOf("rules"),
    channels: limitOf("channels"),
    silences: limitOf("silences"),
  };

  return {
    insertRule(rule, most, signal) {
      const row = { _id: rule.id, revision: rule.revision, document: JSON.stringify(rule) };
      const insert = async () => (await run(signal, () => rules.insertOne(row))).acknowledged;
      return limits.rules.insert(most, insert, signal);
    },
    async findRule(id, signal) {
      const row = await run(signal, () => rules.findOne({ _id: id }, { signal }));
      return row && storedRule(row);
    },
    async changeRule(rule, signal) {
      const { id, revision } = rule;
      const change = { $set: { revision, document: JSON.stringify(rule) } };
      const done = await run(signal, () => rules.updateOne({ _id: id, revision: revision - 1 }, change));
      return done.matchedCount === 1;
    },
    async listRules({ after = "", limit }, signal) {
      const found = await run(signal, () =>
        rules
          .find({ _id: { $gt: after } }, { signal })
          .sort({ _id: 1 })
          .limit(limit)
          .toArray(),
      );
      return found.map(storedRule);
    },
    async removeRule(id, signal) {
      const remove = async () => (await run(signal, () => rules.deleteOne({ _id: id }))).deletedCount;
      return (await limits.rules.remove(remove, signal)) === 1;
    },
    insertChannel(channel, most, signal) {
      const { id: _id, sent_at, storms, revision } = channel;
      const row = { _id, sent_at, storms, revision, document: JSON.stringify(channel) };
      const insert = async () => (await run(signal, () => channels.insertOne(row))).acknowledged;
      return limits.channels.insert(most, insert, signal);
    },
    async findChannel(id, signal) {
      const row = await run(signal, () => channels.findOne({ _id: id }, { signal }));
      return row && storedChannel(row);
    },
    async changeChannel(channel, signal) {
      const { id, revision } = channel;
      const change = { $set: { revision, document: JSON.stringify(channel) } };
      const done = await run(signal, () => channels.updateOne({ _id: id, revision: revision - 1 }, change));
      return done.matchedCount === 1;
    },
    async listChannels({ after = "", limit }, signal) {
      const found = await run(signal, () =>
        channels
          .find({ _id: { $gt: after } }, { signal })
          .sort({ _id: 1 })
          .limit(limit)
          .toArray(),
      );
      return found.map(storedChannel);
    },
    async noteSent(id, { sent_at, storms }, signal) {
      await run(signal, () => channels.updateOne({ _id: id }, { $set: { sent_at, storms } }));
    },
    async removeChannel(id, signal) {
      const remove = async () => (await run(signal, () => channels.deleteOne({ _id: id }))).deletedCount;
      return (await limits.channels.remove(remove, signal)) === 1;
    },
    insertSilence(silence, most, signal) {
      const row = { _id: silence.id, until: silence.until, document: JSON.stringify(silence) };
      const insert = async () => (await run(signal, () => silences.insertOne(row))).acknowledged;
      return limits.silences.insert(most, insert, signal);
    },
    async listSilences({ after = "", limit }, signal) {
      const found = await run(signal, () =>
        silences
          .find({ _id: { $gt: after } }, { signal })
          .sort({ _id: 1 })
          .limit(limit)
          .toArray(),
      );
      return found.map(({ document }) => JSON.parse(document));
    },
    async removeSilence(id, signal) {
      const remove = async () => (await run(signal, () => silences.deleteOne({ _id: id }))).deletedCount;
      return (await limits.silences.remove(remove, signal)) === 1;
    },
    async removeEnded(before, signal) {
      const ended = { until: { $lt: before } };
      const remove = async () => (await run(signal, () => silences.deleteMany(ended))).deletedCount;
      await limits.silences.remove(remove, signal);
    },
    async editionOf(kind, signal) {
      const all = db.collection<{ _id: string; revision?: number; sent_at?: number }>(kind);
      const rows = await run(signal, () =>
        all.find({}, { signal }).project({ revision: 1, sent_at: 1 }).sort({ _id: 1 }).toArray(),
      );
      return rows.map(({ _id, revision, sent_at }) => [_id, revision, sent_at].join(" ")).join();
    },
    async count(signal) {
      const kinds = ["rules", "channels", "silences"] as const;
      const [rules, channels, silences] = await Promise.all(kinds.map((kind) => countOf(kind, signal)));
      return { rules: rules ?? 0, channels: channels ?? 0, silences: silences ?? 0 };
    },
    async correctCounts(signal) {
      await Promise.all(Object.values(limits).map((limit) => limit.correct(signal)));
    },
  };
}

/** Trusts the JSON: only this adapter writes the collections. */
function storedRule({ document }: RuleRow): StoredRule {
  return JSON.parse(document);
}

function storedChannel({ sent_at, storms = {}, revision, document }: ChannelRow): StoredChannel {
  return { ...JSON.parse(document), sent_at, storms, revision };
}

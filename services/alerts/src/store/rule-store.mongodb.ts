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
export function createMongoRuleStore({ db, run }: MongoStore): RuleStore {
  const rules = db.collection<RuleRow>("rules");
  const channels = db.collection<ChannelRow>("channels");
  const silences = db.collection<SilenceRow>("silences");

  return {
    async insertRule(rule, most, signal) {
      if ((await run(signal, () => rules.countDocuments({}, { signal }))) >= most) return false;
      await run(signal, () =>
        rules.insertOne({ _id: rule.id, revision: rule.revision, document: JSON.stringify(rule) }),
      );
      return true;
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
      return (await run(signal, () => rules.deleteOne({ _id: id }))).deletedCount === 1;
    },
    async insertChannel(channel, most, signal) {
      if ((await run(signal, () => channels.countDocuments({}, { signal }))) >= most) return false;
      const { id: _id, sent_at, storms, revision } = channel;
      const row = { _id, sent_at, storms, revision, document: JSON.stringify(channel) };
      await run(signal, () => channels.insertOne(row));
      return true;
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
      return (await run(signal, () => channels.deleteOne({ _id: id }))).deletedCount === 1;
    },
    async insertSilence(silence, most, signal) {
      if ((await run(signal, () => silences.countDocuments({}, { signal }))) >= most) return false;
      const { id: _id, until } = silence;
      await run(signal, () => silences.insertOne({ _id, until, document: JSON.stringify(silence) }));
      return true;
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
      return (await run(signal, () => silences.deleteOne({ _id: id }))).deletedCount === 1;
    },
    async removeEnded(before, signal) {
      await run(signal, () => silences.deleteMany({ until: { $lt: before } }));
    },
    async editionOf(kind, signal) {
      const all = db.collection<{ _id: string; revision?: number; sent_at?: number }>(kind);
      const rows = await run(signal, () =>
        all.find({}, { signal }).project({ revision: 1, sent_at: 1 }).sort({ _id: 1 }).toArray(),
      );
      return rows.map(({ _id, revision, sent_at }) => [_id, revision, sent_at].join(" ")).join();
    },
    async count(signal) {
      const [rulesCount, channelsCount, silencesCount] = await Promise.all(
        [rules, channels, silences].map((all) => run(signal, () => all.countDocuments({}, { signal }))),
      );
      return { rules: rulesCount ?? 0, channels: channelsCount ?? 0, silences: silencesCount ?? 0 };
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

import { randomBytes } from "node:crypto";
import { expiredWindows, mailWindowCollection } from "@devmesh/store/mail-slots.mongodb";
import { openMongo } from "@devmesh/store/mongodb";
import { type MongoUrl, parseStoreUrl } from "@devmesh/store/store-url";
import { describeOverMongodb } from "@devmesh/testkit/describe-over-mongodb";
import type { TestDatabase } from "@devmesh/testkit/mongodb";
import { readQueryPlan } from "@devmesh/testkit/query-plan";
import { afterEach, beforeEach, expect, test } from "@jest/globals";
import { apiKeyCollection, apiKeyQueries } from "../src/store/api-key-store.mongodb.ts";
import { credentialCollection, credentialQueries } from "../src/store/credential-store.mongodb.ts";
import { customerCollection, customerQueries } from "../src/store/customer-store.mongodb.ts";
import { keyCollections, openMongoKeyStore } from "../src/store/key-store.mongodb.ts";
import { sessionByDigest, sessionCollection } from "../src/store/session-store.mongodb.ts";
import { keyStoreSuite } from "./key-store.suite.ts";

const { signal } = new AbortController();

const urlOf = (database: TestDatabase) => parseStoreUrl(database.storeUrl) as MongoUrl;

describeOverMongodb("a key store in MongoDB", (mongodb) => {
  keyStoreSuite("MongoDB", async () => {
    const database = mongodb().newDatabase();
    return {
      open: () => openMongoKeyStore(urlOf(database), signal),
      async reopen(store) {
        await store.close();
        return await openMongoKeyStore(urlOf(database), signal);
      },
      async remove() {
        await database[Symbol.asyncDispose]();
      },
    };
  });

  let database: TestDatabase;
  beforeEach(() => {
    database = mongodb().newDatabase();
  });
  afterEach(async () => {
    await database[Symbol.asyncDispose]();
  });

  test("every query finds its documents by an index", async () => {
    const { db, close } = await openMongo(urlOf(database), keyCollections, signal);
    const digest = randomBytes(32);
    const queries: Record<string, Record<string, readonly object[]>> = {
      [apiKeyCollection.name]: {
        one_of_digest: [apiKeyQueries.byDigest(digest)],
        _id_: [apiKeyQueries.after("a")],
        of_device: [apiKeyQueries.ofDevice("a"), apiKeyQueries.validMasters(1)],
      },
      [credentialCollection.name]: {
        _id_: [credentialQueries.withAccess("a"), credentialQueries.ofToken("a", "e", digest)],
        one_of_public_key: [credentialQueries.byPublicKey(digest)],
      },
      [sessionCollection.name]: { one_of_digest: [sessionByDigest(digest)] },
      [customerCollection.name]: {
        _id_: [customerQueries.after("a")],
        one_of_token: [customerQueries.byTokenDigest(digest)],
        one_of_address: [customerQueries.byAddress("a@b")],
        unconfirmed: [customerQueries.unconfirmed(1)],
      },
      [mailWindowCollection.name]: { by_age: [expiredWindows(1)] },
    };
    for (const [name, byIndex] of Object.entries(queries)) {
      const collection = db.collection(name);
      await collection.insertMany(
        Array.from({ length: 500 }, (_, at) => ({
          _id: `k${at}` as never,
          digest: randomBytes(32),
          device_id: `d${at}`,
          public_key: { digest: randomBytes(32) },
          email: `c${at}@example.com`,
          token_digest: randomBytes(32),
          confirmed_at: at,
          invited_at: at,
          last_taken: at,
        })),
      );
      for (const [index, ofIndex] of Object.entries(byIndex)) {
        for (const query of ofIndex) {
          const plan = readQueryPlan(await collection.find(query).explain());
          expect([query, plan.indexes, plan.scansCollection]).toEqual([query, [index], false]);
        }
      }
    }
    await close();
  });
});

/** A file that the recipe "A new service" of CONTRIBUTING.md creates: its whole text. */
const created: Readonly<Record<string, string>> = {
  "libs/contracts/src/auditor.ts": `import { z } from "zod";
import { defineContract, idempotent } from "./contract.ts";

/** Counts the devices that were created. */
export const auditor = defineContract({
  service: "auditor",
  version: 1,
  methods: {
    countCreated: { ...idempotent, in: z.object({}), out: z.object({ count: z.int() }) },
  },
});
`,
  "services/auditor/package.json": `{
  "name": "@devmesh/auditor",
  "version": "0.1.0",
  "private": true,
  "license": "Apache-2.0",
  "type": "module",
  "exports": {},
  "scripts": {
    "dev": "node ../../tools/launcher/run.mjs dev",
    "check": "tsc -p .",
    "test": "node --disable-warning=ExperimentalWarning ../../node_modules/jest/bin/jest.js --config ../../jest.config.js --rootDir ."
  },
  "dependencies": {
    "@devmesh/contracts": "*",
    "@devmesh/service-kit": "*",
    "@devmesh/store": "*",
    "zod": "4.6.7"
  }
}
`,
  "services/auditor/src/main.ts": `import { mesh } from "@devmesh/contracts/mesh";
import { runService } from "@devmesh/service-kit/process/run-service";
import { AuditorEnv } from "./env.ts";
import { startAuditor } from "./start-auditor.ts";

await runService({ name: "auditor", declaration: mesh.auditor, env: AuditorEnv, start: startAuditor });
`,
  "services/auditor/src/env.ts": `import { ServiceEnv } from "@devmesh/service-kit/process/env";
import { z } from "zod";

/** The auditor's environment. */
export const AuditorEnv = ServiceEnv.extend({
  /** SQLite or MongoDB. */
  STORE_URL: z.string(),
});
export type AuditorEnv = z.infer<typeof AuditorEnv>;
`,
  "services/auditor/src/start-auditor.ts": `import { deviceEvents } from "@devmesh/contracts/devices";
import type { mesh } from "@devmesh/contracts/mesh";
import { subscribe } from "@devmesh/service-kit/events/subscription";
import type { StartService } from "@devmesh/service-kit/process/run-service";
import { mapStoreErrors } from "@devmesh/service-kit/rpc/map-store-errors";
import { isStoreUnavailable } from "@devmesh/store/store-unavailable";
import { parseStoreUrl } from "@devmesh/store/store-url";
import { createAuditor } from "./auditor.ts";
import type { AuditorEnv } from "./env.ts";
import { createMongoAuditStore } from "./store/audit-store.mongodb.ts";
import { createSqliteAuditStore } from "./store/audit-store.sqlite.ts";

/** Opens the store and counts from then on. */
export const startAuditor: StartService<typeof mesh.auditor, AuditorEnv> = async ({ env, bus, signal }) => {
  const url = parseStoreUrl(env.STORE_URL);
  const store =
    url.kind === "sqlite" ? createSqliteAuditStore(url.path) : await createMongoAuditStore(url, signal);
  const counting = subscribe(
    bus,
    { events: deviceEvents, names: ["created"] },
    { created: ({ id }) => store.add(id, signal) },
    { mode: "one" },
  );
  return {
    implementation: mapStoreErrors(createAuditor(store), isStoreUnavailable),
    ready: () => store.ping(AbortSignal.timeout(1_000)),
    stop: () => counting.stop(),
    close: () => store.close(),
  };
};
`,
  "services/auditor/src/auditor.ts": `import type { auditor } from "@devmesh/contracts/auditor";
import type { Implementation } from "@devmesh/service-kit/rpc/implementation";
import type { AuditStore } from "./store/audit-store.ts";

/** The contract, over a store. */
export function createAuditor(store: AuditStore): Implementation<typeof auditor> {
  return { countCreated: async (_, { signal }) => ({ count: await store.count(signal) }) };
}
`,
  "services/auditor/src/store/audit-store.ts": `/** The created devices. */
export interface AuditStore {
  add(id: string, signal: AbortSignal): Promise<void>;
  count(signal: AbortSignal): Promise<number>;
  ping(signal: AbortSignal): Promise<void>;
  close(): Promise<void>;
}
`,
  "services/auditor/src/store/audit-store.sqlite.ts": `import { openSqlite, unlessAborted } from "@devmesh/store/sqlite";
import type { AuditStore } from "./audit-store.ts";

/** Created devices in an SQLite file. */
export function createSqliteAuditStore(path: string): AuditStore {
  const { db, close } = openSqlite(path, {
    migrations: ["CREATE TABLE created (id TEXT PRIMARY KEY) STRICT"],
  });
  const add = db.prepare("INSERT OR IGNORE INTO created VALUES (?)");
  const count = db.prepare("SELECT count(*) AS n FROM created");
  return {
    add: unlessAborted((id) => void add.run(id)),
    count: unlessAborted(() => Number(count.get()?.n)),
    ping: unlessAborted(() => void count.get()),
    close: async () => close(),
  };
}
`,
  "services/auditor/src/store/audit-store.mongodb.ts": `import { openMongo } from "@devmesh/store/mongodb";
import type { MongoUrl } from "@devmesh/store/store-url";
import type { AuditStore } from "./audit-store.ts";

/** Created devices in MongoDB. */
export async function createMongoAuditStore(url: MongoUrl, signal: AbortSignal): Promise<AuditStore> {
  const store = await openMongo(url, [{ name: "created", indexes: [] }], signal);
  const created = store.db.collection<{ readonly _id: string; readonly kept: true }>("created");
  return {
    async add(id, given) {
      const kept = { $setOnInsert: { kept: true } } as const;
      await store.run(given, () => created.updateOne({ _id: id }, kept, { upsert: true }));
    },
    count: (given) => store.run(given, () => created.countDocuments({})),
    ping: (given) => store.ping(given),
    close: () => store.close(),
  };
}
`,
  "services/auditor/test/audit-store.test.ts": `import { describeOverMongodb } from "@devmesh/testkit/describe-over-mongodb";
import { describe, expect, test } from "@jest/globals";
import { createMongoAuditStore } from "../src/store/audit-store.mongodb.ts";
import { createSqliteAuditStore } from "../src/store/audit-store.sqlite.ts";
import type { AuditStore } from "../src/store/audit-store.ts";
import { parseStoreUrl } from "@devmesh/store/store-url";

const { signal } = new AbortController();

async function countsEachDeviceOnce(store: AuditStore) {
  for (const id of ["a", "b", "a"]) await store.add(id, signal);
  expect(await store.count(signal)).toBe(2);
  await store.close();
}

describe("an audit store in SQLite", () => {
  test("counts each device once", async () => {
    await countsEachDeviceOnce(createSqliteAuditStore(":memory:"));
  });
});

describeOverMongodb("an audit store in MongoDB", (mongodb) => {
  test("counts each device once", async () => {
    await using database = mongodb().newDatabase();
    const url = parseStoreUrl(database.storeUrl);
    if (url.kind !== "mongodb") throw new Error("this is no MongoDB");
    await countsEachDeviceOnce(await createMongoAuditStore(url, signal));
  });
});
`,
  "services/auditor/contract/recorded/v1.json": `{
  "calls": [{ "method": "countCreated", "caller": "gateway", "request": {} }],
  "jobs": []
}
`,
  "services/auditor/README.md": `# auditor

Counts the devices that were created.

## Environment

Besides what every service reads (\`ServiceEnv\` of service-kit):

| variable | default | meaning |
| --- | --- | --- |
| \`STORE_URL\` | required | \`sqlite:PATH\` or \`mongodb://HOSTS/DATABASE\` |
`,
};

/** An edit of a file that is there: the text goes after the first line that contains `after`. */
interface Edit {
  readonly after: string;
  readonly text: string;
}

const edited: Readonly<Record<string, readonly Edit[]>> = {
  "libs/contracts/package.json": [{ after: '"exports": {', text: '    "./auditor": "./src/auditor.ts",\n' }],
  "libs/contracts/src/mesh.ts": [
    { after: 'from "./data.ts"', text: 'import { auditor } from "./auditor.ts";\n' },
    { after: 'calls(mailer, ["readQueue"])', text: '      calls(auditor, ["countCreated"]),\n' },
    {
      after: "export const mesh = {",
      text: `  auditor: defineService({
    serves: auditor,
    subscribes: [subscribesTo(deviceEvents, ["created"])],
    store: { volumeGib: 3 },
    memoryMib: 256,
    reaches: [6514],
  }),
`,
    },
  ],
  "compose.yaml": [
    {
      after: "\nservices:",
      text: `  auditor:
    <<: *service
    mem_limit: 256m
    build: { context: ., args: { SERVICE: auditor } }
    image: devmesh-auditor
    depends_on: *depends-on-store
    networks: [default, store]
    environment:
      <<: *environment
      NATS_PASSWORD: \${NATS_PASSWORD_AUDITOR:?}
      STORE_URL: mongodb://auditor:\${MONGODB_PASSWORD_AUDITOR:?}@mongodb/auditor?authSource=admin

`,
    },
  ],
  "docs/architecture.md": [
    { after: "| mailer |", text: "| auditor | the number of devices | SQLite or MongoDB | no number |\n" },
  ],
};

/** The text of each file that is edited or created by hand for a new service with a store, by its path. */
export function filesByHand(read: (path: string) => string): ReadonlyMap<string, string> {
  return new Map([
    ...Object.entries(created),
    ...Object.entries(edited).map(([path, edits]) => [path, edits.reduce(inserted, read(path))] as const),
  ]);
}

function inserted(text: string, { after, text: added }: Edit): string {
  const at = text.indexOf(after);
  const next = text.indexOf("\n", at + after.length) + 1;
  if (at === -1 || next === 0) throw new Error(`nothing has the text "${after}"`);
  return text.slice(0, next) + added + text.slice(next);
}

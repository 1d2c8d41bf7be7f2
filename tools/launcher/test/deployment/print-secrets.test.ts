import { spawnSync } from "node:child_process";
import { stat } from "node:fs/promises";
import { join, resolve } from "node:path";
import { serviceNames, storeOwners } from "@devmesh/contracts/mesh";
import { tempFolder } from "@devmesh/testkit/temp-folder";
import { afterEach, beforeEach, expect, test } from "@jest/globals";
import { z } from "zod";

const program = resolve(import.meta.dirname, "../../src/deployment/print-secrets.ts");
const services = [...serviceNames, "broker-log"].toSorted();
const smtpUrl = "smtps://mesh:a-password@mail.example.com";

let folder: Awaited<ReturnType<typeof tempFolder>>;
beforeEach(async () => {
  folder = await tempFolder();
});
afterEach(async () => {
  await folder[Symbol.asyncDispose]();
});

const { PATH, NODE_COMPILE_CACHE } = process.env;

function print(args: readonly string[], env: NodeJS.ProcessEnv = {}) {
  const { status, stdout, stderr } = spawnSync(
    process.execPath,
    ["--disable-warning=ExperimentalWarning", program, ...args],
    { cwd: folder.path, env: { PATH, NODE_COMPILE_CACHE, ...env }, encoding: "utf8" },
  );
  return { status, stdout, stderr };
}

const List = z.object({
  kind: z.literal("List"),
  items: z.array(
    z.object({
      kind: z.literal("Secret"),
      metadata: z.object({ name: z.string() }),
      stringData: z.record(z.string(), z.string()),
    }),
  ),
});

function secretsOf(stdout: string): Map<string, Record<string, string>> {
  const { items } = List.parse(JSON.parse(stdout));
  return new Map(items.map(({ metadata, stringData }) => [metadata.name, stringData]));
}

test("each service gets a Secret of its own with what it needs, and nothing of another's", () => {
  const secrets = secretsOf(print(["kubernetes"], { SMTP_URL: smtpUrl }).stdout);
  expect(
    Object.fromEntries([...secrets].map(([name, data]) => [name, Object.keys(data).sort()])),
  ).toMatchObject({
    gateway: ["NATS_PASSWORD"],
    devices: ["NATS_PASSWORD"],
    "devices-store": ["STORE_URL"],
    data: ["NATS_DEVICES_PASSWORD", "NATS_PASSWORD"],
    "rpc-bridge": ["NATS_DEVICES_PASSWORD", "NATS_PASSWORD"],
    keys: ["AUTH_ISSUER_SEED", "KEY_ENCRYPTION_KEY", "NATS_PASSWORD"],
    mailer: ["NATS_PASSWORD", "SMTP_URL"],
  });
  // What nats-server reads is the same password, as a string of its language.
  expect(secrets.get("nats")?.NATS_PASSWORD_DATA_DEVICES).toBe(
    `"${secrets.get("data")?.NATS_DEVICES_PASSWORD}"`,
  );
  const password = secrets.get("mongodb")?.["data-password"];
  expect(secrets.get("data-store")?.STORE_URL).toMatch(
    new RegExp(`^mongodb://data:${password}@[^/]+/data\\?`),
  );
  const values = [...secrets]
    .filter(([name]) => name !== "nats" && name !== "mongodb")
    .flatMap(([, data]) => Object.values(data));
  expect(new Set(values).size).toBe(values.length);
});

test("the secrets are kept in a file for the owner alone, and come again from it in each form", async () => {
  const first = print(["kubernetes"], { SMTP_URL: smtpUrl });
  expect(print(["kubernetes"], { SMTP_URL: smtpUrl })).toEqual(first);
  expect((await stat(join(folder.path, "installation.json"))).mode & 0o777).toBe(0o600);
  const keyEncryptionKey = secretsOf(first.stdout).get("keys")?.KEY_ENCRYPTION_KEY;
  expect(print(["compose"]).stdout).toContain(`\nKEY_ENCRYPTION_KEY=${keyEncryptionKey}\n`);
  const other = print(["kubernetes", "--installation", "other.json"], { SMTP_URL: smtpUrl });
  expect(secretsOf(other.stdout).get("keys")?.KEY_ENCRYPTION_KEY).not.toBe(keyEncryptionKey);
});

test("the first master key of compose is one", () => {
  expect(print(["compose"]).stdout).toMatch(/^MASTER_KEY=mk_[0-9A-Za-z]{32}$/m);
});

test("those of MongoDB are left out on request", () => {
  const env = { SMTP_URL: smtpUrl, MONGODB_URL: "mongodb://db.example.com" };
  const { stdout } = print(["kubernetes", "--without-mongodb"], env);
  expect([...secretsOf(stdout).keys()].sort()).toEqual([...services, "nats"].sort());
});

test.each([
  [
    "mongodb://mesh:a-word@db.example.com:27018/?tls=true",
    "mongodb://mesh:a-word@db.example.com:27018/data?tls=true",
    [27018],
  ],
  ["mongodb://a,b:27019,[2001:db8::1]:27017", "mongodb://a,b:27019,[2001:db8::1]:27017/data", [27017, 27019]],
  ["mongodb+srv://mesh:a-word@db.example.com", "mongodb+srv://mesh:a-word@db.example.com/data", [27017]],
])(
  "MongoDB elsewhere, %s, brings STORE_URL and a policy for its ports, and no passwords for one here",
  (url, store, ports) => {
    const { stdout } = print(["kubernetes"], { SMTP_URL: smtpUrl, MONGODB_URL: url });
    const { items } = z
      .object({ items: z.array(z.looseObject({ kind: z.string() })) })
      .parse(JSON.parse(stdout));
    const secrets = secretsOf(
      JSON.stringify({ kind: "List", items: items.filter(({ kind }) => kind === "Secret") }),
    );
    expect([...secrets.keys()].sort()).toEqual(
      [...services, ...storeOwners.map((service) => `${service}-store`), "nats"].sort(),
    );
    expect(secrets.get("data-store")).toEqual({ STORE_URL: store });
    expect(items.filter(({ kind }) => kind === "NetworkPolicy")).toMatchObject([
      { spec: { policyTypes: ["Egress"], egress: [{ ports: ports.map((port) => ({ port })) }] } },
    ]);
  },
);

test("a MONGODB_URL with a database is refused", () => {
  const MONGODB_URL = "mongodb://db.example.com/devmesh";
  expect(print(["kubernetes"], { SMTP_URL: smtpUrl, MONGODB_URL })).toEqual({
    status: 1,
    stdout: "",
    stderr: "MONGODB_URL must be mongodb://USER:PASSWORD@HOSTS/?OPTIONS, without a database.\n",
  });
});

test.each([
  [["kubernetes"], 1, "Set SMTP_URL to the server that takes mail, such as smtps://USER:PASSWORD@HOST.\n"],
  [["swarm"], 2, "Say compose or kubernetes.\n\nUsage: "],
  [[], 2, "Say compose or kubernetes.\n\nUsage: "],
])("%j without more ends with code %i and says what is amiss", (args, status, said) => {
  const printed = print(args);
  expect(printed).toMatchObject({ status, stdout: "" });
  expect(printed.stderr.startsWith(said)).toBe(true);
});

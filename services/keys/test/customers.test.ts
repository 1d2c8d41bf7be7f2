import { readFile } from "node:fs/promises";
import { mailQueue } from "@devmesh/contracts/mailer";
import { createQueueAdmin } from "@devmesh/service-kit/queue/admin";
import { consumeQueue } from "@devmesh/service-kit/queue/consumer";
import { eventually } from "@devmesh/testkit/eventually";
import { afterEach, beforeEach, describe, expect, test } from "@jest/globals";
import { openSqliteKeyStore } from "../src/store/key-store.sqlite.ts";
import { type KeysWorld, type RunningKeys, startKeysIn, startWorld } from "./running-keys.ts";

const hourMs = 60 * 60 * 1000;
const weekMs = 7 * 24 * hourMs;

let world: KeysWorld;
let service: RunningKeys;
let invited: string[];
let endMailer: () => Promise<void>;
beforeEach(async () => {
  world = await startWorld();
  service = await startKeysIn(world, { env: { MAIL_PER_HOUR: "8" } });
  invited = [];
  const bus = await world.connect("mailer");
  const consuming = await consumeQueue(
    bus,
    mailQueue,
    async ({ customer_id }) => void invited.push(customer_id),
  );
  const office = createQueueAdmin(bus, mailQueue);
  mailed = async () => {
    await eventually(async () => (await office.count()).pending === 0);
    return invited;
  };
  endMailer = async () => {
    await consuming.stop();
    await bus.close();
  };
});
afterEach(async () => {
  await endMailer();
  await service[Symbol.asyncDispose]();
  await world[Symbol.asyncDispose]();
});

/** Ids of the customers who were mailed, once the queue is empty. */
let mailed: () => Promise<readonly string[]>;

async function invite(email: string): Promise<string> {
  await service.call("invite", { email });
  const id = (await mailed()).at(-1);
  if (id === undefined) throw new Error("nobody was invited");
  return id;
}

async function invitation(email: string) {
  const id = await invite(email);
  return { id, ...(await service.call("readInvitation", { customer_id: id })) };
}

describe("an invitation", () => {
  test("carries address, token, confirmation and its end, a week on", async () => {
    const { id, ...read } = await invitation(" Ann@Example.com ");
    expect(read).toMatchObject({ email: "ann@example.com", expires_at: "2026-01-08T00:00:00.000Z" });
    expect(read.token).toMatch(/^ck_/);
    expect((await service.call("verify", { key: read.token })).principal).toEqual({
      kind: "customer",
      customer_id: id,
    });
  });

  test("sent again has the same token and confirmation and lasts longer", async () => {
    const first = await invitation("ann@example.com");
    await service.clock.advance(1_000);
    const second = await invitation("ann@example.com");
    expect(second).toEqual({ ...first, expires_at: "2026-01-08T00:00:01.000Z" });
    expect(await mailed()).toHaveLength(2);
  });

  test("to an address is mailed three times an hour at most, over a restart too, and answers the same beyond", async () => {
    for (let at = 0; at < 5; at++) {
      expect(await service.call("invite", { email: "ann@example.com" })).toEqual({});
      await service.clock.advance(60_000);
    }
    expect(await mailed()).toHaveLength(3);
    await service[Symbol.asyncDispose]();
    service = await startKeysIn(world, { clock: service.clock });
    await service.call("invite", { email: "ann@example.com" });
    expect(await mailed()).toHaveLength(3);
    await service.clock.advance(55 * 60_000);
    for (let at = 0; at < 3; at++) await service.call("invite", { email: "ann@example.com" });
    // The window slides: one of the three mails is an hour old now.
    expect(await mailed()).toHaveLength(4);
  });

  test("is mailed to so many strangers in all, and beyond that no customer is stored", async () => {
    for (let at = 0; at < 12; at++) {
      await service.call("invite", { email: `ann${at}@example.com`, network: `198.51.100.${at}` });
    }
    expect(await mailed()).toHaveLength(6);
    expect((await service.call("listCustomers", {})).items).toHaveLength(6);
    await service.clock.advance(hourMs);
    await service.call("invite", { email: "ann11@example.com" });
    expect(await mailed()).toHaveLength(7);
  });

  test("to a customer who confirmed is mailed when strangers have used up their part", async () => {
    const { token } = await invitation("ann@example.com");
    await service.call("invite", { email: "bob@example.com" });
    await service.call("verify", { key: token });
    for (let at = 0; at < 12; at++)
      await service.call("invite", { email: `eve${at}@example.com`, network: `198.51.100.${at}` });
    expect(await mailed()).toHaveLength(6);
    for (const email of ["ann@example.com", "bob@example.com", "ann@example.com"]) {
      await service.call("invite", { email });
    }
    expect(await mailed()).toHaveLength(8);
  });

  test("is mailed so often for one network, over a restart too, and others have their share", async () => {
    await service[Symbol.asyncDispose]();
    const env = { MAIL_PER_NETWORK_HOUR: "3" };
    service = await startKeysIn(world, { env });
    const inviteFrom = async (network: string, name: string) =>
      await service.call("invite", { email: `${name}@example.com`, network });
    const tooMany = { code: "resource_exhausted", reason: "too_many_invitations" };
    for (const name of ["a", "b", "c"]) await inviteFrom("198.51.100.7", name);
    await expect(inviteFrom("198.51.100.7", "d")).rejects.toMatchObject(tooMany);
    expect(await mailed()).toHaveLength(3);
    await service[Symbol.asyncDispose]();
    expect((await readFile(service.storePath)).includes("198.51.100.7")).toBe(false);
    service = await startKeysIn(world, { clock: service.clock, env });
    await expect(inviteFrom("198.51.100.7", "d")).rejects.toMatchObject(tooMany);
    expect(await mailed()).toHaveLength(3);
    await inviteFrom("2001:db8:0:1::/64", "d");
    expect(await mailed()).toHaveLength(4);
    await service.clock.advance(hourMs);
    await inviteFrom("198.51.100.7", "e");
    expect(await mailed()).toHaveLength(5);
  });

  test("is answered by the requests of the network alone, whatever the address had before", async () => {
    await service[Symbol.asyncDispose]();
    const env = { MAIL_PER_NETWORK_HOUR: "3", MAIL_PER_ADDRESS_HOUR: "1", MAIL_PER_HOUR: "4" };
    service = await startKeysIn(world, { env });
    const answersTo = async (network: string, names: readonly string[]) => {
      const answers: unknown[] = [];
      for (const name of names) {
        const asked = service.call("invite", { email: `${name}@example.com`, network });
        answers.push(await asked.catch(({ reason }) => reason));
      }
      return answers;
    };
    const expected = [{}, {}, {}, "too_many_invitations", "too_many_invitations"];
    expect(await answersTo("198.51.100.1", ["ann", "ann", "ann", "ann", "bob"])).toEqual(expected);
    expect(await answersTo("198.51.100.2", ["ann", "bob", "carl", "dora", "ann"])).toEqual(expected);
    expect(await answersTo("198.51.100.3", ["eve", "finn", "gus", "hal", "eve"])).toEqual(expected);
  });

  test("that is not mailed is counted by what kept it back", async () => {
    for (let at = 0; at < 4; at++) await service.call("invite", { email: "ann@example.com" });
    for (let at = 0; at < 4; at++) await service.call("invite", { email: `eve${at}@example.com` });
    const metrics = await service.metrics();
    expect(metrics).toContain('devmesh_invitations_total{outcome="granted"} 6');
    expect(metrics).toContain('devmesh_invitations_total{outcome="address_limit"} 1');
    expect(metrics).toContain('devmesh_invitations_total{outcome="strangers_limit"} 1');
  });

  test("of one address at the same time makes one customer", async () => {
    await Promise.all(Array.from({ length: 3 }, () => service.call("invite", { email: "ann@example.com" })));
    expect(new Set(await mailed()).size).toBe(1);
    expect((await service.call("listCustomers", {})).items).toHaveLength(1);
  });

  test("that nobody followed ends after a week, and the address gets another token", async () => {
    const first = await invitation("ann@example.com");
    await service.clock.advance(weekMs);
    await expect(service.call("verify", { key: first.token })).rejects.toMatchObject({
      reason: "key_invalid",
    });
    await expect(service.call("readCustomer", { customer_id: first.id })).rejects.toMatchObject({
      reason: "customer_not_found",
    });
    expect((await service.call("listCustomers", {})).items).toEqual([]);
    const second = await invitation("ann@example.com");
    expect(second.id).not.toBe(first.id);
    await eventually(() => service.customerChanges.length === 3);
    expect(service.customerChanges).toEqual([
      { id: first.id, change: "invited" },
      { id: first.id, change: "deleted" },
      { id: second.id, change: "invited" },
    ]);
    await expect(service.call("confirmCustomer", first)).rejects.toMatchObject({
      reason: "confirmation_invalid",
    });
  });
});

test("a sweep removes what has ended and tells so, and removes nothing else", async () => {
  const ended = await invite("ann@example.com");
  const { token } = await invitation("bob@example.com");
  await service.call("verify", { key: token });
  await service.clock.advance(weekMs - 1);
  const fresh = await invite("eve@example.com");
  await service.clock.advance(10 * 60_000);
  const removals = await eventually(() => {
    const found = service.customerChanges.filter(({ change }) => change === "deleted");
    return found.length > 0 && found;
  });
  expect(removals).toEqual([{ id: ended, change: "deleted" }]);
  await service[Symbol.asyncDispose]();
  const store = openSqliteKeyStore(service.storePath);
  const { signal } = new AbortController();
  const kept = await store.customers.list(null, 10, signal);
  await store.close();
  service = await startKeysIn(world, { clock: service.clock });
  expect(kept.map(({ email }) => email)).toEqual(["bob@example.com", "eve@example.com"]);
  expect(kept[1]?.id).toBe(fresh);
  expect(kept.map(({ id }) => id)).not.toContain(ended);
});

describe("a confirmation", () => {
  test("sets the time once, and doing it twice is harmless", async () => {
    const { id, confirmation } = await invitation("ann@example.com");
    expect((await service.call("readCustomer", { customer_id: id })).confirmed_at).toBeNull();
    for (let at = 0; at < 2; at++) {
      await service.clock.advance(1_000);
      expect(await service.call("confirmCustomer", { confirmation })).toEqual({ email: "ann@example.com" });
    }
    expect((await service.call("readCustomer", { customer_id: id })).confirmed_at).toBe(
      "2026-01-01T00:00:01.000Z",
    );
    await service.clock.advance(2 * weekMs);
    await service.call("readCustomer", { customer_id: id });
  });

  test("is refused when expired, forged or malformed", async () => {
    const { id, confirmation } = await invitation("ann@example.com");
    const other = await invitation("bob@example.com");
    const forged = `${id}.${other.confirmation.split(".")[1]}`;
    for (const wrong of [
      forged,
      "",
      ".",
      id,
      `${confirmation}.`,
      confirmation.slice(0, -1),
      "x".repeat(10_000),
    ]) {
      await expect(service.call("confirmCustomer", { confirmation: wrong })).rejects.toMatchObject({
        code: "not_found",
        reason: "confirmation_invalid",
      });
    }
    await service.clock.advance(weekMs);
    await expect(service.call("confirmCustomer", { confirmation })).rejects.toMatchObject({
      reason: "confirmation_invalid",
    });
  });

  test("happens by the first use of the token too", async () => {
    const { id, token } = await invitation("ann@example.com");
    await service.clock.advance(5_000);
    await service.call("verify", { key: token });
    await service.clock.advance(2 * weekMs);
    await service.call("verify", { key: token });
    expect((await service.call("readCustomer", { customer_id: id })).confirmed_at).toBe(
      "2026-01-01T00:00:05.000Z",
    );
  });
});

describe("a customer", () => {
  test("takes the whole object posted back with another meta", async () => {
    const id = await invite("ann@example.com");
    const customer = await service.call("readCustomer", { customer_id: id });
    await service.clock.advance(1_000);
    const body = { ...customer, meta: { devices: { a: {} } } };
    const updated = await service.call("updateCustomer", { customer_id: id, body });
    expect(updated).toEqual({ ...body, updated_at: "2026-01-01T00:00:01.000Z" });
    expect(await service.call("readCustomer", { customer_id: id })).toEqual(updated);
    const replaced = await service.call("updateCustomer", { customer_id: id, body: { meta: {} } });
    expect(replaced.meta).toEqual({});
  });

  test("refuses changed and unknown members, each with its pointer, and changes nothing", async () => {
    const id = await invite("ann@example.com");
    const body = { meta: { a: 1 }, email: "eve@example.com", token: null, admin: true, "a/b~": 1, id };
    await expect(service.call("updateCustomer", { customer_id: id, body })).rejects.toMatchObject({
      code: "invalid_argument",
      reason: "customer_read_only",
      details: [
        { pointer: "/email", detail: "cannot be changed" },
        { pointer: "/token", detail: "cannot be changed" },
        { pointer: "/admin", detail: "is not known here" },
        { pointer: "/a~1b~0", detail: "is not known here" },
      ],
    });
    for (const meta of [[], null, "x", 1]) {
      await expect(service.call("updateCustomer", { customer_id: id, body: { meta } })).rejects.toMatchObject(
        {
          details: [{ pointer: "/meta", detail: "must be a JSON object" }],
        },
      );
    }
    await expect(service.call("updateCustomer", { customer_id: id, body: {} })).rejects.toMatchObject({
      reason: "customer_read_only",
    });
    expect((await service.call("readCustomer", { customer_id: id })).meta).toEqual({});
  });

  test("keeps member names such as __proto__ as data", async () => {
    const id = await invite("ann@example.com");
    const body = JSON.parse('{"meta":{"__proto__":{"admin":true},"constructor":1,"":2}}');
    await service.call("updateCustomer", { customer_id: id, body });
    const { meta } = await service.call("readCustomer", { customer_id: id });
    expect(JSON.stringify(meta)).toBe('{"__proto__":{"admin":true},"constructor":1,"":2}');
    expect(Object.getPrototypeOf(meta)).toBe(Object.prototype);
    const polluting = JSON.parse('{"meta":{},"__proto__":{}}');
    await expect(service.call("updateCustomer", { customer_id: id, body: polluting })).rejects.toMatchObject({
      details: [{ pointer: "/__proto__", detail: "is not known here" }],
    });
  });

  test("has 16 KB of meta, counted in bytes of compact JSON", async () => {
    const id = await invite("ann@example.com");
    const fits = { a: "ä".repeat((16_384 - '{"a":""}'.length) / 2) };
    await service.call("updateCustomer", { customer_id: id, body: { meta: fits } });
    await expect(
      service.call("updateCustomer", { customer_id: id, body: { meta: { a: `${fits.a}x` } } }),
    ).rejects.toMatchObject({ reason: "meta_too_large" });
  });

  test("has meta of bounded depth, so that writing it again cannot exhaust a stack", async () => {
    const id = await invite("ann@example.com");
    const nested = (levels: number) => JSON.parse(`{"meta":${'{"a":'.repeat(levels)}1${"}".repeat(levels)}}`);
    await service.call("updateCustomer", { customer_id: id, body: nested(200) });
    for (const levels of [201, 2_000]) {
      await expect(
        service.call("updateCustomer", { customer_id: id, body: nested(levels) }),
      ).rejects.toMatchObject({
        details: [{ pointer: "/meta", detail: "is nested deeper than 200 levels" }],
      });
    }
  });

  test("is listed without its token, page by page", async () => {
    const ids = [];
    for (const name of ["a", "b", "c"]) ids.push(await invite(`${name}@example.com`));
    const first = await service.call("listCustomers", { limit: 2 });
    const second = await service.call("listCustomers", { limit: 2, after: first.next ?? "" });
    expect([...first.items, ...second.items].map(({ id }) => id)).toEqual(ids);
    expect(second.next).toBeNull();
    expect(JSON.stringify(first)).not.toContain("ck_");
    expect(await service.call("countCustomers", {})).toEqual({ count: 3 });
  });

  test("with large metas is listed in pages that fit a reply", async () => {
    await service[Symbol.asyncDispose]();
    service = await startKeysIn(world, { env: { MAIL_PER_HOUR: "1000", MAIL_PER_NETWORK_HOUR: "1000" } });
    const ids = [];
    const meta = { a: "x".repeat(16_000) };
    for (let at = 0; at < 40; at++) {
      const id = await invite(`ann${at}@example.com`);
      ids.push(id);
      await service.call("updateCustomer", { customer_id: id, body: { meta } });
    }
    const listed = [];
    for (let after: string | null | undefined; after !== null; ) {
      const page: { next: string | null; items: { id: string }[] } = await service.call(
        "listCustomers",
        after === undefined ? {} : { after },
      );
      listed.push(...page.items.map(({ id }) => id));
      after = page.next;
    }
    expect(listed).toEqual(ids);
  });

  test("deleted, takes its key along", async () => {
    const { id, token } = await invitation("ann@example.com");
    await service.call("deleteCustomer", { customer_id: id });
    await expect(service.call("verify", { key: token })).rejects.toMatchObject({ reason: "key_invalid" });
    await expect(service.call("deleteCustomer", { customer_id: id })).rejects.toMatchObject({
      reason: "customer_not_found",
    });
    await service.received();
    expect(service.revoked).toEqual([id]);
    await eventually(() => service.customerChanges.length === 2);
    expect(service.customerChanges[1]).toEqual({ id, change: "deleted" });
    await expect(service.call("readInvitation", { customer_id: id })).rejects.toMatchObject({
      reason: "customer_not_found",
    });
  });
});

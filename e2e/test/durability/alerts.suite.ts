import { eventually } from "@devmesh/testkit/eventually";
import type { TestMesh } from "@devmesh/testkit/mesh";
import type { SmtpSink } from "@devmesh/testkit/smtp-sink";
import { beforeAll, describe, expect, test } from "@jest/globals";
import type { RestClient } from "../../src/rest-client.ts";
import { asMaster, type EnrolledDevice, enrolDevice } from "../../src/tenant.ts";

const hostile = "<img src=x onerror=alert(1)>";

/** Alerts of a whole mesh with the SMTP server `post`. */
export function alerts(shared: () => TestMesh, post: () => SmtpSink): void {
  describe("alerts", () => {
    let master: RestClient;
    const freezers: EnrolledDevice[] = [];
    const where = { labels: { all: ["alert"] } };
    beforeAll(async () => {
      master = asMaster(shared());
      for (const id of ["freezer-1", "freezer-2", "freezer-3"]) {
        freezers.push(await enrolDevice(shared(), id));
        const shadow = { tags: { labels: ["alert"], limit: hostile } };
        await master.post(`devices/${id}`, { name: `Cellar ${id} ${hostile}`, shadow });
      }
    });

    const createRule = async (rule: object) =>
      (await master.post("rules", { name: "rule", where, ...rule })).json;
    const createChannel = async (to: string) =>
      (await master.post("channels", { kind: "mail", name: "on call", to: [to] })).json.id as string;
    const alertsOf = async ({ id }: { id: string }, query = "") =>
      (await master.get(`alerts?rule_id=${id}${query}`)).json as {
        readonly id: string;
        readonly device_id: string;
        readonly state: string;
      }[];

    test("several that come together are one mail, as text and HTML, and no text of people or devices is HTML", async () => {
      const rule = await createRule({
        name: `Limit ${hostile}`,
        severity: "critical",
        when: { kind: "shadow", pointer: "/tags/limit", is: "==", than: hostile },
        notify: [await createChannel("ann@alerts.example.com")],
        note: `Call ${hostile}`,
      });
      const { content } = await post().awaitMail(({ to }) => to.includes("ann@alerts.example.com"));
      const { subject, text = "", html = "" } = content;
      expect(subject).toMatch(/^3 alerts: Limit/);
      for (const body of [text, html]) {
        for (const { id } of freezers) expect(body).toContain(`${shared().url}/devices/${id}`);
        for (const part of ["(freezer-2)", "/tags/limit of the shadow ==", "Since: ", "/alerts/silences"])
          expect(body).toContain(part);
        expect(body).toContain(`${shared().url}/alerts/${(await alertsOf(rule))[0]?.id}`);
      }
      expect(text).toContain(`Device: Cellar freezer-2 ${hostile} (freezer-2)`);
      expect(text).toContain(`Value: "${hostile}"`);
      expect(html).not.toContain("<img");
      expect(post().mails.filter(({ to }) => to.includes("ann@alerts.example.com"))).toHaveLength(1);
      expect(await alertsOf(rule)).toHaveLength(3);
      await master.delete(`rules/${rule.id}`);
    }, 120_000);

    test("a record that breaks a rule is a mail, and its alert is counted", async () => {
      const rule = await createRule({
        when: { kind: "value", topic: "celsius", is: ">", than: -15 },
        notify: [await createChannel("bob@alerts.example.com")],
      });
      await using device = await (freezers[0] as EnrolledDevice).connect();
      await eventually(async () => {
        await device.publish("db/freezer-1/celsius", "-12.5", 1);
        return (await alertsOf(rule)).length === 1;
      });
      const { content } = await post().awaitMail(({ to }) => to.includes("bob@alerts.example.com"));
      expect(content.subject).toMatch(/^Firing: rule, Cellar freezer-1 .*\(freezer-1\)$/);
      for (const part of ["celsius > -15", "Value: -12.5"]) expect(content.text).toContain(part);
      expect((await master.get("alerts/summary")).json.rules).toContainEqual(
        expect.objectContaining({ rule_id: rule.id, firing: 1, unacknowledged: 1 }),
      );
      const { json, headers } = await master.get("alerts?state=firing&limit=1");
      expect(Number(headers.get("total-count"))).toBeGreaterThanOrEqual(json.length);
      await device.publish("db/freezer-1/celsius", "-20", 1);
      await eventually(async () => (await alertsOf(rule, "&state=cleared")).length === 1);
      await master.delete(`rules/${rule.id}`);
    }, 180_000);

    test("what devices do and do not do fires: events, and a delta that is not taken", async () => {
      const often = await createRule({ when: { kind: "event", name: "online", count: 1, within: "PT10M" } });
      const lazy = await createRule({ when: { kind: "not_taken", longer_than: "PT10S" } });
      await using _ = await (freezers[1] as EnrolledDevice).connect();
      await eventually(async () =>
        (await alertsOf(often)).some(({ device_id }) => device_id === "freezer-2"),
      );
      await master.post("devices/freezer-3", { shadow: { state: { desired: { on: true } } } });
      await eventually(async () => (await alertsOf(lazy)).length === 1);
      expect((await master.post("rules/try", { name: "try", where, when: lazy.when })).json).toMatchObject({
        devices: 3,
        matching: 1,
        firings: [{ device_id: "freezer-3", until: null }],
      });
      await master.post("devices/freezer-3", { shadow: { state: { reported: { on: true } } } });
      await eventually(async () => (await alertsOf(lazy, "&state=cleared")).length === 1);
      for (const { id } of [often, lazy]) await master.delete(`rules/${id}`);
    }, 240_000);

    test("a silence keeps mails back until it ends", async () => {
      const silence = { where, until: new Date(Date.now() + 600_000).toISOString() };
      const { id } = (await master.post("silences", silence)).json;
      const to = "tim@alerts.example.com";
      const notify = [await createChannel(to)];
      const rule = await createRule({
        when: { kind: "shadow", pointer: "/tags/limit", is: "!=", than: "x" },
        notify,
      });
      await eventually(async () => (await alertsOf(rule)).length === 3);
      const list = await master.get("silences");
      expect([list.headers.get("total-count"), list.json[0]?.id]).toEqual(["1", id]);
      // Another channel, which is not slower, gets its mail meanwhile.
      const open = await createRule({
        where: { text: { none: ["freezer"] } },
        when: { kind: "shadow", pointer: "/tags/limit", is: "==", than: "y" },
        notify: [await createChannel("eve@alerts.example.com")],
      });
      await enrolDevice(shared(), "lamp-of-alerts");
      await master.post("devices/lamp-of-alerts", { shadow: { tags: { limit: "y" } } });
      await post().awaitMail((mail) => mail.to.includes("eve@alerts.example.com"));
      expect(post().mails.filter((mail) => mail.to.includes(to))).toEqual([]);
      expect((await master.delete(`silences/${id}`)).status).toBe(204);
      const { content } = await post().awaitMail((mail) => mail.to.includes(to));
      expect(content.subject).toBe("3 alerts: rule");
      for (const one of [rule, open]) await master.delete(`rules/${one.id}`);
    }, 240_000);
  });
}

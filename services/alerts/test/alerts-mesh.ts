import { alertEvents, alerts } from "@devmesh/contracts/alerts";
import { data } from "@devmesh/contracts/data";
import { devices } from "@devmesh/contracts/devices";
import { type AlertMail, alertMailQueue } from "@devmesh/contracts/mailer";
import { Alert } from "@devmesh/contracts/model/alert";
import type { DataRecord } from "@devmesh/contracts/model/data-record";
import { lengthOf } from "@devmesh/contracts/model/duration";
import { columnsOf } from "@devmesh/contracts/model/record-columns";
import { Webhook } from "@devmesh/contracts/model/webhook";
import { calls } from "@devmesh/contracts/topology";
import { webhooks } from "@devmesh/contracts/webhooks";
import { type Bus, connectBus } from "@devmesh/service-kit/bus";
import { followEvents } from "@devmesh/service-kit/events/event-stream";
import { createLogger } from "@devmesh/service-kit/logger";
import { consumeQueue } from "@devmesh/service-kit/queue/consumer";
import { createClient } from "@devmesh/service-kit/rpc/client";
import { createCallContext } from "@devmesh/service-kit/rpc/context";
import type { CallInput } from "@devmesh/service-kit/rpc/implementation";
import { serve } from "@devmesh/service-kit/rpc/serve";
import { meshUser } from "@devmesh/service-kit/subjects";
import { startBroker } from "@devmesh/testkit/broker";
import { fakeContract, fakeDevice } from "@devmesh/testkit/fakes";
import { type StartedService, startService } from "@devmesh/testkit/service-process";
import type { z } from "zod";

export const call = () => createCallContext({ timeoutMs: 20_000 });

/** How far an alert has come: its record is read, its row is stored, its message is asked for or accepted. */
export type Step = "record" | "row" | "message" | "accepted";

const connectClient = (bus: Bus) =>
  createClient(
    bus,
    calls(alerts, [
      "createRule",
      "tryRule",
      "changeRule",
      "deleteRule",
      "listRules",
      "listAlerts",
      "readAlert",
      "changeAlert",
      "createChannel",
      "changeChannel",
      "testChannel",
      "deleteChannel",
    ]),
  );

export type AlertsMesh = Awaited<ReturnType<typeof startAlertsMesh>>;

/** A broker with the services that `alerts` calls, and processes of `alerts` itself. */
export async function startAlertsMesh() {
  const running = new AsyncDisposableStack();
  const records: DataRecord[] = [];
  /** Since when a device of the mesh has no connection; null while it has one. */
  const offlineSince = new Map<string, number | null>();
  const mails: AlertMail[] = [];
  const deliveries: CallInput<typeof webhooks, "deliver">[] = [];
  const broker = running.use(await startBroker());
  const log = createLogger({ service: "test", level: "silent" });
  const connectAs = async (name: string): Promise<Bus> => {
    const password = broker.passwords[name] ?? "";
    const bus = await connectBus({ url: broker.url, name, user: meshUser(name), password, log });
    running.defer(() => bus.close());
    return bus;
  };
  const gateway = await connectAs("gateway");
  const mesh = {
    records,
    offlineSince,
    mails,
    deliveries,
    /** Records of a page. */
    pageLimit: 1_000,
    /** Is given each step that an alert of a topic or rule makes, before what follows it. */
    onStep: (_step: Step, _of: string): void => undefined,
    client: connectClient(gateway),
    start: (storeUrl: string): Promise<StartedService> =>
      startService("alerts", {
        ...broker.environmentOf("alerts"),
        STORE_URL: storeUrl,
        LOG_LEVEL: "warn",
      }),
    async alertsOf(
      conditions: Omit<CallInput<typeof alerts, "listAlerts">, "limit"> = {},
    ): Promise<readonly Alert[]> {
      return (await mesh.client.listAlerts({ ...conditions, limit: 500 }, call())).items;
    },
    publish(device_id: string, name: string, value: unknown, at = Date.now()): void {
      const timestamp = new Date(at).toISOString();
      const topic = `db/${device_id}/${name}`;
      records.push({ id: records.length + 1, timestamp, device_id, topic, message: JSON.stringify(value) });
    },
    [Symbol.asyncDispose]: () => running.disposeAsync(),
  };
  for (const id of ["pump", "fan", "freezer", "lamp", "away"]) offlineSince.set(id, null);
  serve(
    await connectAs("devices"),
    devices,
    fakeContract(devices, {
      async selectDevices({ where, ids, limit }) {
        const silentMs = where.silent_for === undefined ? null : lengthOf(where.silent_for);
        const isSilent = (since: number | null) => since !== null && Date.now() - since >= (silentMs ?? 0);
        const items = [...offlineSince]
          .filter(([id]) => ids?.includes(id) ?? true)
          .filter(([id]) => where.labels?.all?.every((label) => id.includes(label)) ?? true)
          .filter(([, since]) => silentMs === null || isSilent(since))
          .map(([id]) => id);
        return { next: null, items: items.slice(0, limit) };
      },
      async readDevice({ id }, context) {
        if (!offlineSince.has(id)) return context.fail("device_not_found");
        return { etag: "1", device: fakeDevice(id, { name: `The ${id}` }) as never };
      },
    }),
  );
  serve(
    await connectAs("data"),
    data,
    fakeContract(data, {
      async queryRecords({ since = "" }) {
        return { next: null, items: records.filter(({ timestamp }) => timestamp >= since).slice(0, 1) };
      },
      async listLatest({ after = "" }) {
        const newest = new Map(records.map((record) => [record.topic, record]));
        const page = [...newest.values()]
          .filter(({ topic }) => topic > after)
          .sort((a, b) => (a.topic < b.topic ? -1 : 1))
          .slice(0, 2);
        const items = page.map(({ device_id, topic, timestamp }) => ({ device_id, topic, timestamp }));
        return { next: page.at(1)?.topic ?? null, items };
      },
      async followRecords({ after, topics }) {
        const from = after === null ? records.length : Number(after);
        const page = records.slice(from, from + mesh.pageLimit);
        const isWanted = ({ topic }: DataRecord) =>
          topics === undefined || topics.some((filter) => topic.endsWith(`/${filter}`));
        for (const name of new Set(page.map(({ topic }) => topic.split("/").at(-1) ?? "")))
          mesh.onStep("record", name);
        const next = from + page.length;
        const caught_up_at = next === records.length ? new Date().toISOString() : null;
        return { next: String(next), caught_up_at, records: columnsOf(page.filter(isWanted)) };
      },
    }),
  );
  serve(
    await connectAs("webhooks"),
    webhooks,
    fakeContract(webhooks, {
      readWebhook: async ({ id }, context) =>
        id.startsWith("wh_")
          ? { ...(Webhook.meta()?.example as z.output<typeof Webhook>), id }
          : context.fail("webhook_not_found"),
      async deliver(delivery, context) {
        if (delivery.webhook_id === "wh_off") return context.fail("webhook_disabled");
        mesh.onStep("message", delivery.webhook_id);
        deliveries.push(delivery);
        setImmediate(() => mesh.onStep("accepted", delivery.webhook_id));
        return {};
      },
    }),
  );
  const mailer = await connectAs("mailer");
  const worker = await consumeQueue(mailer, alertMailQueue, async (job) => void mails.push(job), {
    concurrency: 1,
  });
  running.defer(() => worker.stop());
  const following = new AbortController();
  const followed = followEvents(
    gateway,
    [{ events: alertEvents, names: ["alert_changed"] }],
    {
      began: () => undefined,
      events(batch) {
        for (const { payload } of batch) {
          const alert = Alert.safeParse(JSON.parse(Buffer.from(payload).toString()).alert);
          if (alert.success) mesh.onStep("row", alert.data.rule_id);
        }
      },
    },
    following.signal,
  );
  running.defer(async () => {
    following.abort();
    await followed;
  });
  return mesh;
}

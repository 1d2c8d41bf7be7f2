import { mqttBounds } from "@devmesh/contracts/mqtt";
import type { Bus } from "@devmesh/service-kit/bus";
import { natsConnection } from "@devmesh/service-kit/connection/nats-connection";
import { createPublisher } from "@devmesh/service-kit/events/publisher";
import { subscribe } from "@devmesh/service-kit/events/subscription";
import { announce, discover } from "@devmesh/service-kit/process/discovery";
import { createQueueAdmin } from "@devmesh/service-kit/queue/admin";
import { consumeQueue } from "@devmesh/service-kit/queue/consumer";
import { createProducer } from "@devmesh/service-kit/queue/producer";
import { createClient } from "@devmesh/service-kit/rpc/client";
import { createCallContext } from "@devmesh/service-kit/rpc/context";
import { serve } from "@devmesh/service-kit/rpc/serve";
import { reconnectedSubject } from "@devmesh/service-kit/subjects";
import { eventually } from "@devmesh/testkit/eventually";
import { letters, mesh, type SampleBroker, startBroker, visits } from "@devmesh/testkit/sample-mesh/broker";
import { everyMethod, greeter, greetings } from "@devmesh/testkit/sample-mesh/greeter";
import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import { PermissionViolationError } from "@nats-io/nats-core";
import { brokerUsers } from "../src/broker-config.ts";
import { createDeviceLink } from "../src/device-link.ts";
import { ensureDeviceConsumer, provisionDeviceStream } from "../src/mqtt-stream.ts";
import { listRetainedTopics } from "../src/retained-messages.ts";

describe("the user of a service", () => {
  let broker: SampleBroker;
  const buses = new Map<string, Bus>();
  beforeAll(async () => {
    broker = await startBroker();
    for (const { name } of brokerUsers(mesh)) buses.set(name, await broker.connect(name));
  });
  afterAll(() => broker.stop());

  const as = (user: string): Bus => {
    const bus = buses.get(user);
    if (bus === undefined) throw new Error(`no user ${user}`);
    return bus;
  };
  const violations = new Map<Bus, Set<string>>();
  /** Whether the broker lets the user publish there. */
  async function mayPublish(bus: Bus, subject: string): Promise<boolean> {
    const refused = watch(bus);
    refused.delete(`publish ${subject}`);
    bus[natsConnection].publish(subject, "");
    await bus.flush();
    await new Promise((resolve) => setImmediate(resolve));
    return !refused.has(`publish ${subject}`);
  }
  async function maySubscribe(bus: Bus, subject: string, queue?: string): Promise<boolean> {
    let refused = false;
    const subscription = bus[natsConnection].subscribe(subject, {
      ...(queue === undefined ? {} : { queue }),
      callback: (error) => {
        refused ||= error instanceof PermissionViolationError;
      },
    });
    await bus.flush();
    if (!refused) subscription.unsubscribe();
    return !refused;
  }
  function watch(bus: Bus): Set<string> {
    const known = violations.get(bus);
    if (known !== undefined) return known;
    const refused = new Set<string>();
    violations.set(bus, refused);
    void (async () => {
      for await (const status of bus[natsConnection].status()) {
        if (status.type === "error" && status.error instanceof PermissionViolationError) {
          refused.add(`publish ${status.error.subject}`);
        }
      }
    })();
    return refused;
  }

  test("can do all that its declaration says", async () => {
    const served = serve(as("greeter"), greeter, greetings());
    announce(as("greeter"), { description: "", served: [served] });
    const publisher = await createPublisher(as("greeter"), visits);
    const producer = await createProducer(as("greeter"), letters);
    const heard = Promise.withResolvers<string>();
    subscribe(
      as("caller"),
      mesh.caller.subscribes[0],
      { visited: ({ id }) => heard.resolve(id) },
      { mode: "each" },
    );
    const delivered = Promise.withResolvers<string>();
    const consuming = await consumeQueue(as("postman"), letters, async ({ to }) => {
      if (to === "nowhere") throw new Error("no such place");
      delivered.resolve(to);
    });
    await Promise.all([...buses.values()].map((bus) => bus.flush()));
    expect(
      await createClient(as("caller"), everyMethod).greet(
        { name: "Ada" },
        createCallContext({ timeoutMs: 30_000 }),
      ),
    ).toEqual({ text: "hello Ada" });
    await publisher.visited({ id: "pump-1", at: 1 });
    expect(await heard.promise).toBe("pump-1");
    await producer.enqueue({ to: "Ada" });
    expect(await delivered.promise).toBe("Ada");
    const office = createQueueAdmin(as("postman"), letters);
    // The handler has finished; its acknowledgement is on its way.
    await eventually(async () => (await office.count()).pending === 0);
    expect(await office.listDeadLetters({ limit: 5 })).toEqual({ letters: [], next: null });
    expect(await office.retryDeadLetter(1)).toBe(false);
    await consuming.stop();
  });

  test("operator finds the services that run, with the inbox of any NATS client", async () => {
    for (const service of ["caller", "postman"]) announce(as(service), { description: "", served: [] });
    await Promise.all([...buses.values()].map((bus) => bus.flush()));
    const operator = await broker.connect("operator", { inboxPrefix: "_INBOX" });
    const found = (await discover(operator, 500)).map(({ name }) => name);
    expect(found).toEqual(expect.arrayContaining(["caller", "postman"]));
  });

  test("finds the services that run, if that is its right", async () => {
    announce(as("keys"), { description: "", served: [] });
    await as("keys").flush();
    expect((await discover(as("onlooker"), 500)).map(({ name }) => name)).toContain("keys");
    expect(await mayPublish(as("onlooker"), "$SRV.INFO")).toBe(false);
    expect(await mayPublish(as("caller"), "$SRV.STATS")).toBe(false);
  });

  test("in account DEVICES can do all that its right says", async () => {
    const done = new AbortController();
    const provisioned = provisionDeviceStream(as("rpc-bridge.devices"), { signal: done.signal });
    await using bridge = await broker.bridge();
    await provisioned;
    await ensureDeviceConsumer(as("data.devices"), "data");
    await ensureDeviceConsumer(as("rpc-bridge.devices"), "rpc-bridge");
    // Twice is once.
    await provisionDeviceStream(as("rpc-bridge.devices"), { signal: done.signal });
    await using pump = await broker.device("pump-1");
    await pump.subscribe("pump-1/#", 1);
    const answers: string[] = [];
    const link = createDeviceLink({
      bus: as("rpc-bridge.devices"),
      connect: () => Promise.reject(new Error("one connection is enough")),
      replica: "a",
      onReply: (id, payload) => void answers.push(`${id}: ${payload}`),
    });
    {
      using line = await link.openCall("pump-1", 1);
      expect(line?.send(Buffer.from("call"))).not.toBeNull();
      await pump.awaitMessage("pump-1/rpc");
      const { repliesPerCall } = mqttBounds;
      for (let n = 0; n <= repliesPerCall; n++) await pump.publish("pump-1/r/a/rpc", "answer", 1);
      await pump.publish("pump-1/r/rpc", "another", 1);
      await eventually(() => answers.length > repliesPerCall);
      expect(answers).toEqual([...Array(repliesPerCall).fill("pump-1: answer"), "pump-1: another"]);
    }
    await bridge.publish("pump-1/shadow/delta", "delta", 1, true);
    await pump.publish("db/pump-1/kept", "1", 1, true);
    await pump.publish("pump-1/own/kept", "1", 1, true);
    const kept = async () => (await listRetainedTopics(as("rpc-bridge.devices"), "pump-1")).topics;
    expect([...(await kept())].sort()).toEqual(["pump-1/own/kept", "pump-1/shadow/delta"]);
    await bridge.publish("pump-1/own/kept", "", 1, true);
    await bridge.publish("pump-1/shadow/delta", "", 1, true);
    expect(await kept()).toEqual(["db/pump-1/kept"]);
    await bridge.publish("db/pump-1/kept", "", 1, true);
    expect(await kept()).toEqual([]);
  });

  test("can do nothing else: every user tried on every other user's subjects", async () => {
    const users = brokerUsers(mesh);
    const concrete = (subject: string) =>
      subject
        .replace(/^(\S+)( .*)?$/, "$1")
        .replaceAll("*", "x")
        .replace(/>$/, "x");
    const covers = (grant: string, subject: string) => {
      const [granted, tokens] = [grant.split("."), subject.split(".")];
      const matches = granted.every((token, at) => token === ">" || token === "*" || token === tokens[at]);
      return matches && (granted.at(-1) === ">" || granted.length === tokens.length);
    };
    const wrong: string[] = [];
    for (const account of ["MESH", "DEVICES"]) {
      const inAccount = users.filter((user) => user.account === account);
      const publishable = new Set(
        inAccount.flatMap(({ permissions }) => permissions.publish.allow).map(concrete),
      );
      const subscribable = new Set(inAccount.flatMap(({ permissions }) => permissions.subscribe.allow));
      for (const { name: user, permissions } of inAccount) {
        for (const subject of publishable) {
          // The bridge may reach any topic of a device; what it may not is tried below.
          if (user === "rpc-bridge.devices") continue;
          const may = await mayPublish(as(user), subject);
          const allowed = permissions.publish.allow.some((grant) => covers(grant, subject));
          if (may !== allowed) wrong.push(`${user} publish ${subject}: ${may}`);
        }
        for (const entry of subscribable) {
          const [subject = "", queue] = entry.split(" ");
          const may = await maySubscribe(as(user), subject, queue);
          if (may !== permissions.subscribe.allow.includes(entry))
            wrong.push(`${user} subscribe ${entry}: ${may}`);
          // Outside its queue group a service would receive every call.
          if (queue !== undefined && (await maySubscribe(as(user), subject)))
            wrong.push(`${user} taps ${subject}`);
        }
      }
    }
    expect(wrong).toEqual([]);
  });

  test.each([
    "$JS.API.STREAM.DELETE.$MQTT_msgs",
    "$JS.API.STREAM.PURGE.$MQTT_sess",
    "$JS.API.STREAM.PURGE.$MQTT_rmsgs",
    "$JS.API.STREAM.PURGE.$MQTT_out",
    "$JS.API.STREAM.CREATE.COPY",
    "$JS.API.STREAM.UPDATE.$MQTT_sess",
    "$JS.API.STREAM.MSG.DELETE.$MQTT_msgs",
    "$JS.API.STREAM.MSG.DELETE.$MQTT_sess",
    "$JS.API.STREAM.MSG.DELETE.$MQTT_rmsgs",
    "$JS.API.STREAM.MSG.GET.$MQTT_out",
    "$JS.API.CONSUMER.DELETE.$MQTT_msgs.data",
    "$JS.API.CONSUMER.MSG.NEXT.$MQTT_msgs.data",
    "$JS.API.CONSUMER.CREATE.$MQTT_msgs.tap",
    "$JS.ACK.$MQTT_msgs.data.1.1.1.1.1",
    "$MQTT.sess.x",
    "$SYS.REQ.ACCOUNT.PING.CONNZ",
    "_INBOX_data.x.y",
  ])("of the bridge, though it may reach every device, cannot publish %s", async (subject) => {
    expect(await mayPublish(as("rpc-bridge.devices"), subject)).toBe(false);
  });

  test("of a service that answers cannot answer for another one, nor answer those that do not call it", async () => {
    expect(await mayPublish(as("greeter"), "_INBOX_caller.greeter.x.y")).toBe(true);
    expect(await mayPublish(as("greeter"), reconnectedSubject("_INBOX_caller", "greeter"))).toBe(true);
    expect(await mayPublish(as("greeter"), "_INBOX_caller.keys.x.y")).toBe(false);
    expect(await mayPublish(as("greeter"), "_INBOX_watcher.greeter.x.y")).toBe(false);
  });

  test("of the bridge cannot do so over MQTT either", async () => {
    await using bridge = await broker.bridge();
    const seen: string[] = [];
    as("data.devices")[natsConnection].subscribe("_INBOX_data.>", {
      callback: (_error, msg) => void seen.push(msg.subject),
    });
    await as("data.devices").flush();
    await bridge.publish("_INBOX_data/x", "forged", 1);
    await as("data.devices").flush();
    expect(seen).toEqual([]);
    expect(await bridge.subscribe("db/#")).toBe(128);
    expect(await bridge.subscribe("#")).toBe(128);
  });

  test("of a service without MQTT cannot log in over it", async () => {
    await expect(broker.device("caller.mesh", { password: "secret of caller" })).rejects.toThrow();
    await expect(broker.device("data.devices", { password: "secret of data.devices" })).rejects.toThrow();
  });
});

test.each(["lost", "replaced"] as const)(
  "a service answers what it was asked before its connection was %s",
  async (change) => {
    await using broker = await startBroker();
    const [calling, serving] = [await broker.connect("caller"), await broker.connect("greeter")];
    const asked = Promise.withResolvers<void>();
    const held = Promise.withResolvers<void>();
    const greet = async ({ name }: { readonly name: string }) => {
      asked.resolve();
      await held.promise;
      return { text: `hello ${name}` };
    };
    serve(serving, greeter, greetings({ greet }));
    await serving.flush();
    const client = createClient(calling, mesh.caller.calls[0]);
    const greeted = client.greet({ name: "Ada" }, createCallContext({ timeoutMs: 20_000 }));
    await asked.promise;
    const changed = new Promise<void>((resolve) =>
      change === "lost" ? serving.onDisconnect(resolve) : serving.onReconnect(resolve),
    );
    await Promise.all([changed, serving[natsConnection].reconnect()]);
    held.resolve();
    expect(await greeted).toEqual({ text: "hello Ada" });
  },
);

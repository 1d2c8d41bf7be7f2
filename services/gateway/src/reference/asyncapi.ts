import type { MqttAddress } from "@devmesh/contracts/model/mqtt-address";
import { allTopics, clientIdSuffix, mqttBounds } from "@devmesh/contracts/mqtt";
import { release } from "@devmesh/contracts/release";
import { schemaOf } from "./asyncapi-schema.ts";
import { describeWebhooks } from "./asyncapi-webhooks.ts";

const description = `How devices speak MQTT with Devmesh, and what webhooks send. The REST API is described by
[openapi.json](/api/v2/openapi.json).

The client id is the id of the device, the id and a suffix (\`pump-1:sensor\`, the suffix as
\`${clientIdSuffix.source}\`), or empty. A device may publish on the topics that it sends to and on no others: the
broker drops other messages, and acknowledges them all the same. It may subscribe to anything below its own id
but \`{id}/rpc/#\`.

A connection has at most ${mqttBounds.subscriptions} subscriptions, ${mqttBounds.acknowledgedSubscriptions} of them at QoS 1 or 2. A device has at most ${mqttBounds.openConnections} open
connections and ${mqttBounds.persistentSessions} persistent sessions. Operations are described from the point of view of a
device, and that of webhooks from that of their receiver.

An event of a webhook is a CloudEvent, signed as Standard Webhooks says, whose libraries verify it with the secret of the
webhook. It comes at least once, in no order; records come in the order of storing.`;

const parameters = {
  id: { description: "Id of the device.", examples: ["pump-1"] },
  replica: { description: "One level, as the `src` of the call has it.", examples: ["x4Tn8"] },
  name: { description: "One level or more, none of them empty.", examples: ["temperature"] },
};

type NamedTopic = (typeof allTopics)[number];

/** The AsyncAPI 3.0 document: the topics of devices and the requests of webhooks. `apiHost` replaces no host. */
export function describeMessages(broker: MqttAddress, apiHost = "127.0.0.1"): object {
  const schemas: Record<string, unknown> = {};
  const byName = (part: (topic: NamedTopic) => object) =>
    Object.fromEntries(allTopics.map((topic) => [topic.name, part(topic)]));
  const messages = byName((topic) => describeMessage(topic, schemas));
  const webhooks = describeWebhooks(schemas);
  return {
    asyncapi: "3.0.0",
    id: "urn:devmesh:mqtt",
    info: {
      title: "Devmesh for devices and receivers of webhooks",
      version: release,
      description,
      license: { name: "Apache-2.0" },
    },
    defaultContentType: "application/json",
    servers: { broker: describeServer(broker, apiHost), receiver: webhooks.server },
    channels: {
      ...byName(({ name, topic, summary }) => ({
        address: topic.replace("...}", "}"),
        summary,
        servers: [{ $ref: "#/servers/broker" }],
        messages: { [name]: { $ref: `#/components/messages/${name}` } },
        parameters: Object.fromEntries(
          [...topic.matchAll(/\{(\w+)/g)].map(([, parameter]) => [
            parameter,
            { $ref: `#/components/parameters/${parameter}` },
          ]),
        ),
      })),
      webhook: webhooks.channel,
    },
    operations: {
      ...byName(({ name, from, qos, retained = false, summary }) => ({
        action: from === "device" ? "send" : "receive",
        channel: { $ref: `#/channels/${name}` },
        summary,
        messages: [{ $ref: `#/channels/${name}/messages/${name}` }],
        ...(qos !== "any" && { bindings: { mqtt: { qos, retain: retained, bindingVersion: "0.2.0" } } }),
      })),
      webhook: webhooks.operation,
    },
    components: {
      messages: { ...messages, ...webhooks.messages },
      schemas: { ...schemas, WebhookHeaders: webhooks.headers },
      parameters,
      securitySchemes: {
        token: {
          type: "userPassword",
          description: "The user name is the id of the device, the password its token (`dt_…`).",
        },
      },
    },
  };
}

function describeServer({ host, port, tls }: MqttAddress, apiHost: string): object {
  const authority = host?.includes(":") ? `[${host}]` : (host ?? "{host}");
  return {
    host: `${authority}:${port}`,
    protocol: tls ? "mqtts" : "mqtt",
    protocolVersion: "3.1.1",
    description: "The broker. It may also have a listener for WebSockets, at the path `/mqtt`.",
    ...(host === null && {
      variables: { host: { default: apiHost, description: "The host of the REST API." } },
    }),
    security: [{ $ref: "#/components/securitySchemes/token" }],
  };
}

/** Named schemas within the payload become components. */
function describeMessage(
  { name, payload, maxBytes, maxNameLength, summary, examples }: NamedTopic,
  schemas: Record<string, unknown>,
): object {
  const limits = [
    ...(maxBytes === undefined ? [] : [`At most ${maxBytes / 1024} KB.`]),
    ...(maxNameLength === undefined ? [] : [`The name has at most ${maxNameLength} characters.`]),
  ];
  return {
    name,
    summary,
    ...(limits.length > 0 && { description: limits.join(" ") }),
    contentType: payload === null ? "application/octet-stream" : "application/json",
    ...(payload !== null && { payload: schemaOf(payload, "input", schemas) }),
    examples: examples.map((example) => ({ payload: example })),
  };
}

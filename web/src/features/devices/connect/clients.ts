import { deviceTopics } from "@devmesh/contracts/mqtt";
import type { Broker } from "./use-broker.ts";

/** The address and the login of a device. */
export interface GuideValues extends Broker {
  readonly id: string;
  /** Its MQTT password. */
  readonly token: string;
}

/** A command to run, or a file to write. */
interface SetupStep {
  readonly label: string;
  readonly text: string;
}

/** A program, library or firmware that devices connect with. */
interface ClientGuide {
  readonly name: string;
  /** It runs on a board, which has its own network address. */
  readonly onBoard: boolean;
  /** What to do, in this order, until the device publishes a value. */
  readonly steps: (connection: GuideValues) => readonly SetupStep[];
}

/**
 * The clients that the dashboard explains. Each program is complete but for the values of a Wi-Fi network: it publishes
 * every ten seconds, connects again, answers calls of `sum` and takes the desired state over. `connect.suite.ts` of e2e
 * runs those for mosquitto, Python and Node.
 */
export const clients: readonly ClientGuide[] = [
  {
    name: "mosquitto",
    onBoard: false,
    steps: (connection) => [
      { label: "Publish a value every 10 s", text: `while ${publishCommand(connection)}; do sleep 10; done` },
      { label: "Answer calls and take desired state over, with jq", text: answerScript(connection) },
    ],
  },
  {
    name: "Python (paho)",
    onBoard: false,
    steps: (connection) => [
      { label: "Install", text: "pip install 'paho-mqtt>=2'" },
      { label: "device.py", text: pythonProgram(connection) },
    ],
  },
  {
    name: "Node (MQTT.js)",
    onBoard: false,
    steps: (connection) => [
      { label: "Install", text: "npm install mqtt" },
      { label: "device.mjs", text: nodeProgram(connection) },
    ],
  },
  {
    name: "ESP32 Arduino",
    onBoard: true,
    steps: (connection) => [
      { label: "Install", text: "arduino-cli lib install PubSubClient ArduinoJson" },
      { label: "device.ino", text: arduinoSketch(connection) },
    ],
  },
  {
    name: "ESP-IDF",
    onBoard: true,
    steps: (connection) => [
      { label: "Create the project", text: espIdfProject },
      { label: "main/device.c", text: espIdfProgram(connection) },
      { label: "Run", text: "idf.py flash monitor" },
    ],
  },
  {
    name: "MicroPython",
    onBoard: true,
    steps: (connection) => [
      {
        label: "Install",
        text: `mpremote mip install umqtt.simple${connection.tls ? "\nmpremote cp ca.der :" : ""}`,
      },
      { label: "main.py", text: microPythonProgram(connection) },
    ],
  },
  {
    name: "Mongoose OS",
    onBoard: true,
    steps: (connection) => [
      { label: "Configure", text: mongooseOsSettings(connection) },
      { label: "init.js", text: mongooseOsProgram(connection) },
      { label: "Run", text: "mos put init.js\nmos call Sys.Reboot\nmos console" },
    ],
  },
];

/** A command that stores a value as the device. */
export function publishCommand(connection: GuideValues): string {
  const { id } = connection;
  const login = mosquittoLogin(connection, `${id}:sensor`);
  return `mosquitto_pub ${login} \\\n  -t ${recordTopic(id)} -q 1 -m '${value}'`;
}

const recordTopic = (id: string) => deviceTopics.record(id, "temperature");

/** The value that each client publishes first. */
const value = '{"celsius":21.5}';

/** A command that reads the device over the REST API, with the key in `$DEVMESH_KEY`. */
export function readCommand(id: string): string {
  return `curl -s -H "Authorization: Bearer $DEVMESH_KEY" ${window.location.origin}/api/v2/devices/${id}`;
}

function answerScript(connection: GuideValues): string {
  const { id } = connection;
  const publish = `mosquitto_pub ${mosquittoLogin(connection, `${id}:answers`)}`;
  return `mosquitto_sub ${mosquittoLogin(connection, id)} \\
  -t ${deviceTopics.call(id)} -t ${deviceTopics.shadowDelta(id)} -q 1 -F '%t %p' |
while read -r topic message; do
  echo "$topic $message"
  case $topic in
  ${deviceTopics.call(id)})
    reply=$(jq -r .src <<< "$message")/rpc
    jq -c 'if .method == "sum" then {id, result: (.params | add)}
      else {id, error: {code: 404, message: "no such function"}} end' <<< "$message" |
      ${publish} -t "$reply" -s ;;
  *)
    # Nothing differs any more: an answer would be another change.
    reported=$(jq -c 'select(.state != {}) | {state: {reported: .state}}' <<< "$message")
    [ -z "$reported" ] ||
      ${publish} \\
        -t ${deviceTopics.shadowUpdate(id)} -q 1 -m "$reported" ;;
  esac
done`;
}

/** Options of the mosquitto clients; with TLS they trust the system's certificates. */
function mosquittoLogin({ id, token, host, port, tls }: GuideValues, clientId: string): string {
  return `-h ${host} -p ${port}${tls ? " --tls-use-os-certs" : ""} -i ${clientId} -u ${id} -P ${token}`;
}

function pythonProgram({ id, token, host, port, tls }: GuideValues): string {
  return `import json, random, time
import paho.mqtt.client as mqtt

def on_connect(client, userdata, flags, reason, properties):
    print("connected:", reason)
    if not reason.is_failure:
        client.subscribe([("${deviceTopics.call(id)}", 1), ("${deviceTopics.shadowDelta(id)}", 1)])

def on_message(client, userdata, message):
    print(message.topic, message.payload.decode())
    body = json.loads(message.payload)
    if message.topic == "${deviceTopics.call(id)}":
        if body["method"] == "sum":
            answer = {"result": sum(body["params"])}
        else:
            answer = {"error": {"code": 404, "message": "no such function"}}
        client.publish(body["src"] + "/rpc", json.dumps({"id": body["id"], **answer}))
    elif body["state"]:  # Empty: nothing differs any more.
        client.publish("${deviceTopics.shadowUpdate(id)}", json.dumps({"state": {"reported": body["state"]}}), qos=1)

client = mqtt.Client(mqtt.CallbackAPIVersion.VERSION2, client_id="${id}", protocol=mqtt.MQTTv311)
client.username_pw_set("${id}", "${token}")
${tls ? "client.tls_set()\n" : ""}client.on_connect = on_connect
client.on_message = on_message
client.connect_async("${host}", ${port}, keepalive=60)
client.loop_start()

stored = 0
while True:
    while not client.is_connected():
        time.sleep(0.1)
    record = client.publish("${recordTopic(id)}", json.dumps({"celsius": round(random.uniform(20, 23), 1)}), qos=1)
    time.sleep(10)
    if record.rc == 0 and record.is_published():
        stored += 1
        print("acknowledged by the broker:", stored)`;
}

function nodeProgram(connection: GuideValues): string {
  const { id, token } = connection;
  return `import mqtt from "mqtt";

const client = mqtt.connect("${urlOf(connection)}", {
  protocolVersion: 4,
  clientId: "${id}",
  username: "${id}",
  password: "${token}",
});
client.on("connect", () => {
  console.log("connected");
  client.subscribe(["${deviceTopics.call(id)}", "${deviceTopics.shadowDelta(id)}"], { qos: 1 });
});
client.on("message", (topic, payload) => {
  console.log(topic, payload.toString());
  const { id, src, method, params, state } = JSON.parse(payload);
  if (topic === "${deviceTopics.call(id)}") {
    const answer =
      method === "sum"
        ? { result: params.reduce((total, one) => total + one, 0) }
        : { error: { code: 404, message: "no such function" } };
    client.publish(src + "/rpc", JSON.stringify({ id, ...answer }));
  } else if (Object.keys(state).length > 0) {
    // Empty: nothing differs any more.
    client.publish("${deviceTopics.shadowUpdate(id)}", JSON.stringify({ state: { reported: state } }), { qos: 1 });
  }
});
client.on("error", (error) => console.error(error.message));

let stored = 0;
function measure() {
  const record = JSON.stringify({ celsius: Math.round(200 + 30 * Math.random()) / 10 });
  client.publish("${recordTopic(id)}", record, { qos: 1 }, (error) => {
    if (!error) console.log("acknowledged by the broker:", ++stored);
  });
}
measure();
setInterval(measure, 10_000);`;
}

function arduinoSketch({ id, token, host, port, tls }: GuideValues): string {
  const network = tls
    ? `#include <WiFiClientSecure.h>

// The certificate of the authority that signed the broker's.
const char *CA = R"(-----BEGIN CERTIFICATE-----
...
-----END CERTIFICATE-----)";

WiFiClientSecure network;`
    : "\nWiFiClient network;";
  const trust = `  // Certificates are checked against the time.
  configTime(0, 0, "pool.ntp.org");
  while (time(nullptr) < 1700000000) delay(100);
  network.setCACert(CA);
`;
  return `// The tests of Devmesh do not compile this sketch.
#include <ArduinoJson.h>
#include <PubSubClient.h>
#include <WiFi.h>
${network}
PubSubClient client(network);
unsigned long publishedAt = 0;

void publish(const String &topic, const JsonDocument &body) {
  String text;
  serializeJson(body, text);
  client.publish(topic.c_str(), text.c_str());
}

void onMessage(char *topic, byte *payload, unsigned int length) {
  Serial.printf("%s %.*s\\n", topic, (int)length, (const char *)payload);
  JsonDocument message, answer;
  // PubSubClient uses its buffer again for what is published, so the message is copied.
  if (deserializeJson(message, (const byte *)payload, length)) return;
  if (strcmp(topic, "${deviceTopics.call(id)}") == 0) {
    answer["id"] = message["id"];
    if (message["method"] == "sum") {
      double total = 0;
      for (JsonVariant number : message["params"].as<JsonArray>()) total += number.as<double>();
      answer["result"] = total;
    } else {
      answer["error"]["code"] = 404;
      answer["error"]["message"] = "no such function";
    }
    publish(message["src"].as<String>() + "/rpc", answer);
  } else if (message["state"].size() > 0) {  // Empty: nothing differs any more.
    answer["state"]["reported"] = message["state"];
    publish("${deviceTopics.shadowUpdate(id)}", answer);
  }
}

void setup() {
  Serial.begin(115200);
  WiFi.begin("YOUR_SSID", "YOUR_PASSWORD");
  while (WiFi.status() != WL_CONNECTED) delay(100);
${tls ? trust : ""}  client.setServer("${host}", ${port});
  client.setBufferSize(1024);
  client.setCallback(onMessage);
}

void loop() {
  if (!client.connected()) {
    if (client.connect("${id}", "${id}", "${token}")) {
      client.subscribe("${deviceTopics.call(id)}", 1);
      client.subscribe("${deviceTopics.shadowDelta(id)}", 1);
    } else {
      Serial.printf("not connected: %d\\n", client.state());
      delay(5000);
    }
  }
  client.loop();
  if (client.connected() && (publishedAt == 0 || millis() - publishedAt > 10000)) {
    publishedAt = millis();
    JsonDocument record;
    record["celsius"] = temperatureRead();
    publish("${recordTopic(id)}", record);
  }
}`;
}

/** A component of the examples joins the Wi-Fi network of `menuconfig`; in ESP-IDF 6 MQTT and cJSON are components. */
const espIdfProject = `idf.py create-project device && cd device
cat > main/idf_component.yml <<'END'
dependencies:
  espressif/mqtt:
    version: "*"
    rules:
      - if: "idf_version >=6.0"
  espressif/cjson:
    version: "*"
    rules:
      - if: "idf_version >=6.0"
  protocol_examples_common:
    path: \${IDF_PATH}/examples/common_components/protocol_examples_common
END
idf.py set-target esp32
# The Wi-Fi network: Example Connection Configuration
idf.py menuconfig`;

function espIdfProgram(connection: GuideValues): string {
  const { id, token, tls } = connection;
  return `// The tests of Devmesh do not compile this program.
#include <stdio.h>
#include <string.h>
#include "cJSON.h"
${tls ? '#include "esp_crt_bundle.h"\n' : ""}#include "esp_event.h"
#include "esp_netif.h"
#include "esp_random.h"
#include "freertos/FreeRTOS.h"
#include "freertos/task.h"
#include "mqtt_client.h"
#include "nvs_flash.h"
#include "protocol_examples_common.h"

static void publish(esp_mqtt_client_handle_t client, const char *topic, cJSON *body, int qos) {
  char *text = cJSON_PrintUnformatted(body);
  if (text != NULL) esp_mqtt_client_enqueue(client, topic, text, 0, qos, 0, true);
  cJSON_free(text);
  cJSON_Delete(body);
}

static void answer_call(esp_mqtt_client_handle_t client, const cJSON *call) {
  const cJSON *src = cJSON_GetObjectItem(call, "src"), *method = cJSON_GetObjectItem(call, "method");
  if (!cJSON_IsString(src) || !cJSON_IsString(method)) return;
  cJSON *answer = cJSON_CreateObject();
  cJSON_AddItemToObject(answer, "id", cJSON_Duplicate(cJSON_GetObjectItem(call, "id"), true));
  if (strcmp(method->valuestring, "sum") == 0) {
    double total = 0;
    const cJSON *number;
    cJSON_ArrayForEach(number, cJSON_GetObjectItem(call, "params")) total += number->valuedouble;
    cJSON_AddNumberToObject(answer, "result", total);
  } else {
    cJSON *error = cJSON_AddObjectToObject(answer, "error");
    cJSON_AddNumberToObject(error, "code", 404);
    cJSON_AddStringToObject(error, "message", "no such function");
  }
  char topic[192];
  snprintf(topic, sizeof topic, "%s/rpc", src->valuestring);
  publish(client, topic, answer, 0);
}

static void take_over(esp_mqtt_client_handle_t client, cJSON *delta) {
  cJSON *state = cJSON_DetachItemFromObject(delta, "state");
  if (state == NULL || state->child == NULL) {  // Nothing differs any more.
    cJSON_Delete(state);
    return;
  }
  cJSON *update = cJSON_CreateObject();
  cJSON_AddItemToObject(cJSON_AddObjectToObject(update, "state"), "reported", state);
  publish(client, "${deviceTopics.shadowUpdate(id)}", update, 1);
}

static void on_event(void *args, esp_event_base_t base, int32_t id, void *data) {
  esp_mqtt_event_handle_t event = data;
  if (id == MQTT_EVENT_CONNECTED) {
    esp_mqtt_client_subscribe(event->client, "${deviceTopics.call(id)}", 1);
    esp_mqtt_client_subscribe(event->client, "${deviceTopics.shadowDelta(id)}", 1);
  }
  if (id == MQTT_EVENT_PUBLISHED) printf("acknowledged by the broker: %d\\n", event->msg_id);
  if (id != MQTT_EVENT_DATA || event->data_len != event->total_data_len) return;
  printf("%.*s %.*s\\n", event->topic_len, event->topic, event->data_len, event->data);
  cJSON *message = cJSON_ParseWithLength(event->data, event->data_len);
  if (event->topic_len == strlen("${deviceTopics.call(id)}")) answer_call(event->client, message);
  else take_over(event->client, message);
  cJSON_Delete(message);
}

void app_main(void) {
  ESP_ERROR_CHECK(nvs_flash_init());
  ESP_ERROR_CHECK(esp_netif_init());
  ESP_ERROR_CHECK(esp_event_loop_create_default());
  ESP_ERROR_CHECK(example_connect());
  esp_mqtt_client_config_t config = {
    .broker.address.uri = "${urlOf(connection)}",
${tls ? "    .broker.verification.crt_bundle_attach = esp_crt_bundle_attach,\n" : ""}    .credentials.client_id = "${id}",
    .credentials.username = "${id}",
    .credentials.authentication.password = "${token}",
    .session.protocol_ver = MQTT_PROTOCOL_V_3_1_1,
  };
  esp_mqtt_client_handle_t client = esp_mqtt_client_init(&config);
  esp_mqtt_client_register_event(client, ESP_EVENT_ANY_ID, on_event, NULL);
  esp_mqtt_client_start(client);
  for (;;) {
    cJSON *record = cJSON_CreateObject();
    cJSON_AddNumberToObject(record, "celsius", 20 + (esp_random() % 30) / 10.0);
    publish(client, "${recordTopic(id)}", record, 1);
    vTaskDelay(pdMS_TO_TICKS(10000));
  }
}`;
}

function microPythonProgram({ id, token, host, port, tls }: GuideValues): string {
  const context = `
# Certificates are checked against the time; ca.der is that of the authority that signed the broker's.
ntptime.settime()
context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
context.load_verify_locations(cafile="ca.der")
`;
  return `# The tests of Devmesh do not run this program.
import json, network, random, time${tls ? ", ntptime, ssl" : ""}
from umqtt.simple import MQTTClient

wifi = network.WLAN(network.STA_IF)
wifi.active(True)
wifi.connect("YOUR_SSID", "YOUR_PASSWORD")
while not wifi.isconnected():
    time.sleep_ms(100)
${tls ? context : ""}
client = MQTTClient(
    "${id}", "${host}", port=${port}, user="${id}", password="${token}", keepalive=60${tls ? ", ssl=context" : ""}
)

def on_message(topic, message):
    print(topic, message)
    body = json.loads(message)
    if topic == b"${deviceTopics.call(id)}":
        answer = {"id": body["id"]}
        if body["method"] == "sum":
            answer["result"] = sum(body["params"])
        else:
            answer["error"] = {"code": 404, "message": "no such function"}
        client.publish(body["src"] + "/rpc", json.dumps(answer))
    elif body["state"]:  # Empty: nothing differs any more.
        client.publish("${deviceTopics.shadowUpdate(id)}", json.dumps({"state": {"reported": body["state"]}}), qos=1)

client.set_callback(on_message)
while True:
    try:
        client.connect()
        client.subscribe("${deviceTopics.call(id)}")
        client.subscribe("${deviceTopics.shadowDelta(id)}")
        published = time.time() - 10
        while True:
            client.check_msg()
            if time.time() - published >= 10:
                client.publish("${recordTopic(id)}", json.dumps({"celsius": 20 + random.getrandbits(5) / 10}), qos=1)
                published = time.time()
            time.sleep_ms(100)
    except OSError as error:
        print("not connected:", error)
        time.sleep(5)`;
}

function mongooseOsSettings(connection: GuideValues): string {
  const { id, token, port, tls } = connection;
  return `mos wifi YOUR_SSID YOUR_PASSWORD
${tls ? "# The certificate of the authority that signed the broker's.\nmos put ca.pem\n" : ""}mos config-set \\
  device.id=${id} mqtt.enable=true mqtt.server=${bracketed(connection)}:${port} \\
  mqtt.client_id=${id} mqtt.user=${id} mqtt.pass=${token} \\
  ${tls ? "mqtt.ssl_ca_cert=ca.pem " : ""}rpc.mqtt.enable=true \\
  rpc.mqtt.sub_wc=false mqtt.recv_mbuf_limit=8192`;
}

function mongooseOsProgram({ id }: GuideValues): string {
  return `// The tests of Devmesh do not run this program.
load('api_mqtt.js');
load('api_rpc.js');
load('api_timer.js');

RPC.addHandler('sum', function(numbers) {
  let total = 0;
  for (let i = 0; i < numbers.length; i++) total += numbers[i];
  return total;
});
MQTT.sub('${deviceTopics.shadowDelta(id)}', function(conn, topic, message) {
  print(topic, message);
  let state = JSON.parse(message).state;
  // Empty: nothing differs any more.
  for (let name in state) {
    MQTT.pub('${deviceTopics.shadowUpdate(id)}', JSON.stringify({ state: { reported: state } }), 1);
    return;
  }
}, null);
Timer.set(10000, Timer.REPEAT | Timer.RUN_NOW, function() {
  MQTT.pub('${recordTopic(id)}', '${value}', 1);
}, null);`;
}

/** The broker's address for clients that take a URL. */
function urlOf(connection: GuideValues): string {
  return `${connection.tls ? "mqtts" : "mqtt"}://${bracketed(connection)}:${connection.port}`;
}

/** The host as it is written before a port. */
function bracketed({ host }: GuideValues): string {
  return host.includes(":") ? `[${host}]` : host;
}

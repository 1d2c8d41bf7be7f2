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

/** The clients that the dashboard explains. Each step is complete: it needs no value but those of a Wi-Fi network. */
export const clients: readonly ClientGuide[] = [
  {
    name: "mosquitto",
    onBoard: false,
    steps: (connection) => [
      { label: "Publish a value", text: publishCommand(connection) },
      { label: "Show what the device is sent", text: subscribeCommand(connection) },
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
      { label: "Install", text: "arduino-cli lib install PubSubClient" },
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
const valueInC = value.replaceAll('"', '\\"');

/** A command that reads the device over the REST API, with the key in `$DEVMESH_KEY`. */
export function readCommand(id: string): string {
  return `curl -s -H "Authorization: Bearer $DEVMESH_KEY" ${window.location.origin}/api/v2/devices/${id}`;
}

function subscribeCommand(connection: GuideValues): string {
  const { id } = connection;
  return `mosquitto_sub ${mosquittoLogin(connection, id)} \\\n  -t ${deviceTopics.call(id)} -t ${deviceTopics.shadowDelta(id)} -v`;
}

/** Options of the mosquitto clients; with TLS they trust the system's certificates. */
function mosquittoLogin({ id, token, host, port, tls }: GuideValues, clientId: string): string {
  return `-h ${host} -p ${port}${tls ? " --tls-use-os-certs" : ""} -i ${clientId} -u ${id} -P ${token}`;
}

function pythonProgram({ id, token, host, port, tls }: GuideValues): string {
  return `import paho.mqtt.client as mqtt

def on_connect(client, userdata, flags, reason, properties):
    print("connected:", reason)
    if not reason.is_failure:
        client.subscribe("${deviceTopics.shadowDelta(id)}", qos=1)
        client.publish("${recordTopic(id)}", '${value}', qos=1)

def on_message(client, userdata, message):
    print(message.topic, message.payload.decode())

client = mqtt.Client(mqtt.CallbackAPIVersion.VERSION2, client_id="${id}", protocol=mqtt.MQTTv311)
client.username_pw_set("${id}", "${token}")
${tls ? "client.tls_set()\n" : ""}client.on_connect = on_connect
client.on_message = on_message
client.connect("${host}", ${port}, keepalive=60)
client.loop_forever()`;
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
  client.subscribe("${deviceTopics.shadowDelta(id)}", { qos: 1 });
  client.publish("${recordTopic(id)}", '${value}', { qos: 1 });
});
client.on("message", (topic, payload) => console.log(topic, payload.toString()));
client.on("error", (error) => console.error(error.message));`;
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
  return `#include <PubSubClient.h>
#include <WiFi.h>
${network}
PubSubClient client(network);

void onMessage(char *topic, byte *payload, unsigned int length) {
  Serial.printf("%s %.*s\\n", topic, (int)length, (const char *)payload);
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
      client.subscribe("${deviceTopics.shadowDelta(id)}", 1);
      client.publish("${recordTopic(id)}", "${valueInC}");
    } else {
      Serial.printf("not connected: %d\\n", client.state());
      delay(5000);
    }
  }
  client.loop();
}`;
}

/** The examples' component joins a Wi-Fi network that `menuconfig` names; ESP-IDF 6 has MQTT as a component, too. */
const espIdfProject = `idf.py create-project device && cd device
cat > main/idf_component.yml <<'END'
dependencies:
  espressif/mqtt:
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
  return `#include <stdio.h>
${tls ? '#include "esp_crt_bundle.h"\n' : ""}#include "esp_event.h"
#include "esp_netif.h"
#include "mqtt_client.h"
#include "nvs_flash.h"
#include "protocol_examples_common.h"

static void on_event(void *args, esp_event_base_t base, int32_t id, void *data) {
  esp_mqtt_event_handle_t event = data;
  if (id == MQTT_EVENT_CONNECTED) {
    esp_mqtt_client_subscribe(event->client, "${deviceTopics.shadowDelta(id)}", 1);
    esp_mqtt_client_publish(event->client, "${recordTopic(id)}", "${valueInC}", 0, 1, 0);
  }
  if (id == MQTT_EVENT_DATA)
    printf("%.*s %.*s\\n", event->topic_len, event->topic, event->data_len, event->data);
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
}`;
}

function microPythonProgram({ id, token, host, port, tls }: GuideValues): string {
  const context = `
# Certificates are checked against the time; ca.der is that of the authority that signed the broker's.
ntptime.settime()
context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
context.load_verify_locations(cafile="ca.der")
`;
  return `import network${tls ? ", ntptime, ssl" : ""}, time
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
client.set_callback(lambda topic, message: print(topic, message))
client.connect()
client.subscribe("${deviceTopics.shadowDelta(id)}")
client.publish("${recordTopic(id)}", '${value}')
pinged = time.time()
while True:
    client.check_msg()
    if time.time() - pinged > 30:
        client.ping()
        pinged = time.time()
    time.sleep_ms(100)`;
}

function mongooseOsSettings(connection: GuideValues): string {
  const { id, token, port, tls } = connection;
  return `mos wifi YOUR_SSID YOUR_PASSWORD
${tls ? "# The certificate of the authority that signed the broker's.\nmos put ca.pem\n" : ""}mos config-set \\
  device.id=${id} mqtt.enable=true mqtt.server=${bracketed(connection)}:${port} \\
  mqtt.client_id=${id} mqtt.user=${id} mqtt.pass=${token} \\
  ${tls ? "mqtt.ssl_ca_cert=ca.pem " : ""}rpc.mqtt.enable=true`;
}

function mongooseOsProgram({ id }: GuideValues): string {
  return `load('api_mqtt.js');

MQTT.setEventHandler(function(conn, event) {
  if (event === MQTT.EV_CONNACK) MQTT.pub('${recordTopic(id)}', '${value}', 1);
}, null);
MQTT.sub('${deviceTopics.shadowDelta(id)}', function(conn, topic, message) {
  print(topic, message);
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

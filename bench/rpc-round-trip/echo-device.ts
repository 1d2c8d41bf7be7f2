import { reportReady } from "../child.ts";
import { answerCalls } from "../device-calls.ts";

const { BENCH_MQTT_URL = "", BENCH_DEVICE_ID = "", BENCH_DEVICE_TOKEN = "" } = process.env;
await answerCalls(BENCH_MQTT_URL, { id: BENCH_DEVICE_ID, token: BENCH_DEVICE_TOKEN });
reportReady();

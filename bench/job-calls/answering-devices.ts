import { readFileSync } from "node:fs";
import { reportReady } from "../child.ts";
import { answerCalls } from "../device-calls.ts";
import { type Credentials, numbers } from "../mesh-tenant.ts";

/** Devices that stay connected and answer each call at once. */
const { MQTT_URL: url = "", DEVICES = "" } = process.env;
const devices = JSON.parse(readFileSync(DEVICES, "utf8")) as Credentials[];
/** Logins that wait for their answer at a time. */
const atATime = 50;

const next = numbers(devices.length);
const work = async () => {
  for (const nth of next) await answerCalls(url, devices[nth] as Credentials);
};
await Promise.all(Array.from({ length: atATime }, work));
reportReady();

import { relative } from "node:path";
import { release } from "@devmesh/contracts/release";
import type { DataFolder } from "./mesh/data-folder.ts";

/** What the welcome depends on. */
export interface WelcomeOptions {
  /** Of the gateway, without a trailing slash. */
  readonly url: string;
  /** Where devices connect. */
  readonly mqttUrl: string;
  readonly folder: DataFolder;
  /** Null when no keys service has made one. */
  readonly masterKey: string | null;
  /** Shows the key itself; otherwise its file is named. */
  readonly showsKey: boolean;
  readonly demo: boolean;
  /** The container that the mesh runs in, as `docker exec` names it; null outside. */
  readonly container: string | null;
}

/** Addresses, the master key, and lines to try. */
export function welcome(options: WelcomeOptions): string {
  const { url, mqttUrl, folder, masterKey, showsKey, demo, container } = options;
  const keyFile = shellWord(shortPath(folder.masterKey));
  const inContainer = container === null ? "" : `docker exec ${container} `;
  const logs = container === null ? "npm run logs" : `${inContainer}node supervisor/src/logs.ts`;
  const api = `${url}/api/v2`;
  const bearer = '-H "Authorization: Bearer $DEVMESH_KEY"';
  const device = demo ? "demo-lamp" : "pump-1";
  const lines = [
    "",
    `Devmesh     ${release}`,
    `Dashboard   ${url}/`,
    `REST API    ${api}  (reference: ${url}/docs)`,
    `MQTT        ${mqttUrl}`,
    ...(masterKey
      ? [`Master key  ${showsKey ? `${masterKey}  (kept in ${keyFile})` : `in ${keyFile}`}`]
      : []),
    `Logs        ${shortPath(folder.path)}/logs  (${logs})`,
    "",
    "Try it in another terminal:",
    `  export DEVMESH_KEY=$(${inContainer}cat ${keyFile})`,
    ...(demo
      ? []
      : [
          `  curl -sS -w '\\n' ${bearer} -H 'Content-Type: application/json' -d '{"id":"${device}"}' ${api}/devices`,
        ]),
    `  curl -sS -w '\\n' ${bearer} ${api}/devices`,
    ...(demo
      ? [
          `  curl -sS -w '\\n' ${bearer} ${api}/devices/${device}/rpc/RPC.List`,
          `  curl -sS -w '\\n' ${bearer} -H 'Content-Type: application/json' -d '{"on":true}' ${api}/devices/${device}/rpc/Led.Set`,
        ]
      : []),
    `  curl -sS -w '\\n' ${bearer} '${api}/data?skip=-10'`,
    "",
  ];
  return lines.join("\n");
}

function shortPath(path: string): string {
  const fromHere = relative(process.cwd(), path);
  return fromHere.startsWith("..") ? path : fromHere;
}

function shellWord(text: string): string {
  return /^[A-Za-z0-9_./-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`;
}

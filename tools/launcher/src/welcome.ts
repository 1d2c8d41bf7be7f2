import { relative } from "node:path";
import { release } from "@devmesh/contracts/release";
import type { Mesh } from "./mesh/mesh.ts";

/** What the welcome depends on. */
export interface WelcomeOptions {
  readonly mesh: Mesh;
  /** Null when no keys service has made one. */
  readonly masterKey: string | null;
  /** The key itself is shown at the first start only; later its file is named. */
  readonly firstStart: boolean;
  readonly demo: boolean;
}

/** Addresses, the master key, and lines to try. */
export function welcome({ mesh, masterKey, firstStart, demo }: WelcomeOptions): string {
  const keyFile = shellWord(shortPath(mesh.folder.masterKey));
  const api = `${mesh.url}/api/v2`;
  const bearer = '-H "Authorization: Bearer $DEVMESH_KEY"';
  const device = demo ? "demo-lamp" : "pump-1";
  const lines = [
    "",
    `Devmesh     ${release}`,
    `Dashboard   ${mesh.url}/`,
    `REST API    ${api}  (reference: ${mesh.url}/docs)`,
    `MQTT        ${mesh.mqttUrl}`,
    ...(masterKey
      ? [`Master key  ${firstStart ? `${masterKey}  (kept in ${keyFile})` : `in ${keyFile}`}`]
      : []),
    `Logs        ${shortPath(mesh.folder.path)}/logs  (npm run logs)`,
    "",
    "Try it in another terminal:",
    `  export DEVMESH_KEY=$(cat ${keyFile})`,
    ...(demo
      ? []
      : [`  curl -s ${bearer} -H 'Content-Type: application/json' -d '{"id":"${device}"}' ${api}/devices`]),
    `  curl -s ${bearer} ${api}/devices`,
    ...(demo
      ? [
          `  curl -s ${bearer} ${api}/devices/${device}/rpc/RPC.List`,
          `  curl -s ${bearer} -H 'Content-Type: application/json' -d '{"on":true}' ${api}/devices/${device}/rpc/Led.Set`,
        ]
      : []),
    `  curl -s ${bearer} '${api}/data?skip=-10'`,
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

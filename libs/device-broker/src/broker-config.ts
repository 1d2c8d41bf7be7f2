import { mqttBounds } from "@devmesh/contracts/mqtt";
import { meshUser } from "@devmesh/service-kit/subjects";
import {
  connectionsSubject,
  deviceConnectSubject,
  deviceDisconnectSubject,
  deviceStoreRequests,
  devicesAccount,
  meshAccount,
  systemAccount,
} from "./broker-subjects.ts";
import { devicesUser } from "./devices-account.ts";
import {
  type MeshDeclaration,
  operatorPermissions,
  permissionsOf,
  type UserPermissions,
} from "./permissions.ts";

/** A user of the broker: one for each service and account, and `operator`. */
export interface BrokerUser {
  /** Key of its password: the service, `<service>.devices`, or `operator`. */
  readonly name: string;
  readonly user: string;
  readonly account: typeof meshAccount | typeof devicesAccount;
  readonly permissions: UserPermissions;
}

/**
 * A value that nats-server reads from its environment, so that the text holds no secret. It is parsed as configuration:
 * a password must be in double quotes.
 */
export class EnvironmentVariable {
  readonly name: string;

  constructor(name: string) {
    this.name = name;
  }
}

/** Files of a certificate and its key, as paths on the broker's machine. */
export interface TlsFiles {
  readonly certFile: string;
  readonly keyFile: string;
  readonly caFile?: string;
}

/** What a broker's configuration is made from. */
export interface BrokerConfigOptions {
  readonly host: string;
  /** Where MQTT and its WebSocket listen. Default `host`. */
  readonly mqttHost?: string;
  readonly ports: {
    readonly nats: number;
    readonly mqtt: number;
    /** MQTT over WebSocket; absent: none. */
    readonly websocket?: number;
    /** The broker's own HTTP monitoring, on loopback; absent: none. */
    readonly monitor?: number;
  };
  readonly storeDir: string;
  /** Password of each user that `brokerUsers` returns, by `name`. */
  readonly users: Readonly<Record<string, string | EnvironmentVariable>>;
  /** Public half of the seed that `answerAuthCallout` signs with. */
  readonly issuerPublicKey: string | EnvironmentVariable;
  readonly tls?: TlsFiles;
  /** Unique in a cluster. Default `devmesh`. */
  readonly serverName?: string | EnvironmentVariable;
  readonly cluster?: {
    readonly name: string;
    readonly port: number;
    /** `nats-route://HOST:PORT` of the servers; in a variable with user and password. */
    readonly routes: readonly (string | EnvironmentVariable)[];
    readonly user: string;
    readonly password: string | EnvironmentVariable;
  };
  /** Most that JetStream stores, in bytes. Default 16 GB. */
  readonly maxFileStore?: number;
  /**
   * How often stored messages are synced to the disk, such as `500ms`; `always` is before each acknowledgement. Default
   * `100ms`, in a cluster `1s` (ADR 29).
   */
  readonly syncInterval?: string;
  /** Where it writes its log, in two files of 4 MB at most. Default: to stderr. */
  readonly logFile?: string;
  /** Copies of what MQTT stores. Default: the broker's, one for a single server. */
  readonly mqttReplicas?: number;
}

/**
 * Unacknowledged messages of one subscription at QoS 1 or 2. nats-server refuses a subscription with which the sum of
 * its session could exceed 65,535. In whole thousands.
 */
const maxAckPending = Math.floor(65.535 / mqttBounds.acknowledgedSubscriptions) * 1_000;

/**
 * Longest wait of the broker for the decision of a login, in milliseconds. Two thousand logins at once take half of it
 * on two busy cores.
 */
export const loginTimeoutMs = 15_000;

/** How long a connection may take to send its MQTT CONNECT packet, in seconds. */
const connectPacketTimeoutS = 5;

/** Longest TLS handshake, in seconds. With the broker's default of 2, many at once fail. */
const handshakeTimeoutS = 10;

/** Size at which nats-server begins another log file, in bytes. */
const logFileBytes = 4 * 1024 * 1024;

/** Every user of the broker that a mesh needs, and `operator` for a human. */
export function brokerUsers(mesh: MeshDeclaration): readonly BrokerUser[] {
  const ofServices = [...permissionsOf(mesh)].flatMap(([service, permissions]): BrokerUser[] => {
    const own: BrokerUser = {
      name: service,
      user: meshUser(service),
      account: meshAccount,
      permissions: permissions.mesh,
    };
    if (permissions.devices === undefined) return [own];
    const user = devicesUser(service);
    return [own, { name: user, user, account: devicesAccount, permissions: permissions.devices }];
  });
  return [
    ...ofServices,
    {
      name: "operator",
      user: meshUser("operator"),
      account: meshAccount,
      permissions: operatorPermissions,
    },
  ];
}

/**
 * Text of nats-server.conf: accounts MESH, DEVICES and SYS, a user for each service, MQTT logins by auth callout. Write
 * it with mode 0600 when it holds passwords. Throws when one is missing.
 */
export function brokerConfig(mesh: MeshDeclaration, options: BrokerConfigOptions): string {
  const {
    host,
    mqttHost = host,
    ports,
    storeDir,
    issuerPublicKey,
    tls,
    cluster,
    serverName = "devmesh",
  } = options;
  const users = brokerUsers(mesh);
  const usersOf = (account: string) =>
    users.filter((user) => user.account === account).map((user) => userEntry(user, options.users));
  const fromSystem = {
    streams: [deviceConnectSubject, deviceDisconnectSubject],
    services: [connectionsSubject, "$SYS.REQ.SERVER.*.KICK"],
  };
  return render({
    server_name: serverName,
    host,
    port: ports.nats,
    http: ports.monitor === undefined ? undefined : `127.0.0.1:${ports.monitor}`,
    max_payload: 1024 * 1024,
    log_file: options.logFile,
    logfile_size_limit: options.logFile === undefined ? undefined : logFileBytes,
    logfile_max_num: options.logFile === undefined ? undefined : 2,
    // Detects a lost service; the keep-alive detects a lost device.
    ping_interval: "20s",
    // In lame duck mode a server ends its connections from 10 s on, one by one; it is gone after this time.
    lame_duck_duration: cluster && "30s",
    jetstream: {
      store_dir: storeDir,
      max_file_store: options.maxFileStore ?? 16 * 1024 ** 3,
      sync_interval: options.syncInterval ?? (cluster ? "1s" : "100ms"),
      // Each QoS 1 subscription of a device is a consumer of one stream: the default refuses the 1,001st.
      limits: { default_max_consumers: -1 },
    },
    mqtt: {
      host: mqttHost,
      port: ports.mqtt,
      authorization: { timeout: connectPacketTimeoutS },
      max_ack_pending: maxAckPending,
      stream_replicas: options.mqttReplicas,
      // On a single server, a consumer in memory would be lost with a restart while its session goes on. A cluster
      // keeps it in the other servers' memory, where a copy on disk would only delay elections.
      consumer_memory_storage: cluster === undefined ? undefined : true,
      // Requests during an election time out; an early timeout lets the retry succeed sooner.
      js_api_timeout: cluster === undefined ? undefined : "2s",
      tls: tls && tlsEntry(tls),
    },
    websocket:
      ports.websocket === undefined
        ? undefined
        : {
            host: mqttHost,
            port: ports.websocket,
            ...(tls === undefined ? { no_tls: true } : { tls: tlsEntry(tls) }),
          },
    cluster: cluster && {
      name: cluster.name,
      host,
      port: cluster.port,
      routes: cluster.routes.map((route) => withCredentials(route, cluster)),
      authorization: { user: cluster.user, password: cluster.password },
    },
    accounts: {
      [systemAccount]: {
        exports: [
          ...fromSystem.streams.map((stream) => ({ stream, accounts: [meshAccount] })),
          ...fromSystem.services.map((service) => ({
            service,
            response_type: "stream",
            accounts: [meshAccount],
          })),
        ],
      },
      [meshAccount]: {
        jetstream: "enabled",
        users: usersOf(meshAccount),
        imports: [
          ...fromSystem.streams.map((subject) => ({ stream: { account: systemAccount, subject } })),
          ...fromSystem.services.map((subject) => ({ service: { account: systemAccount, subject } })),
          ...Object.entries(deviceStoreRequests).map(([to, subject]) => ({
            service: { account: devicesAccount, subject },
            to,
          })),
        ],
      },
      [devicesAccount]: {
        jetstream: "enabled",
        users: usersOf(devicesAccount),
        exports: Object.values(deviceStoreRequests).map((service) => ({ service, accounts: [meshAccount] })),
        limits: { max_subscriptions: mqttBounds.subscriptions },
      },
    },
    system_account: systemAccount,
    authorization: {
      timeout: loginTimeoutMs / 1_000,
      auth_callout: {
        issuer: issuerPublicKey,
        account: meshAccount,
        auth_users: users.map(({ user }) => user),
      },
    },
  });
}

function userEntry(
  { name, user, permissions }: BrokerUser,
  passwords: Readonly<Record<string, string | EnvironmentVariable>>,
): ConfigMap {
  const password = passwords[name];
  if (password === undefined || password === "") throw new Error(`no password for the broker user ${user}`);
  const { publish, subscribe, responds, connectionTypes } = permissions;
  return {
    user,
    password,
    allowed_connection_types: [...connectionTypes],
    permissions: {
      publish: allowance(publish),
      subscribe: allowance(subscribe),
      allow_responses: responds ? { max: 1, expires: "2m" } : undefined,
    },
  };
}

/** An empty `allow` would allow everything. */
function allowance({ allow, deny }: UserPermissions["publish"]): ConfigMap {
  if (allow.length === 0) return { deny: [">"] };
  return deny.length === 0 ? { allow: [...allow] } : { allow: [...allow], deny: [...deny] };
}

/** A server shows the others what it asks of them; without it in the route it is refused. */
function withCredentials(
  route: string | EnvironmentVariable,
  { user, password }: Pick<NonNullable<BrokerConfigOptions["cluster"]>, "user" | "password">,
): string | EnvironmentVariable {
  if (route instanceof EnvironmentVariable) return route;
  if (password instanceof EnvironmentVariable) {
    throw new Error("a route in clear cannot hold a password from the environment: make it a variable, too");
  }
  const url = new URL(route);
  url.username = encodeURIComponent(user);
  url.password = encodeURIComponent(password);
  return url.href;
}

function tlsEntry({ certFile, keyFile, caFile }: TlsFiles): ConfigMap {
  return { cert_file: certFile, key_file: keyFile, ca_file: caFile, timeout: handshakeTimeoutS };
}

type ConfigValue = string | number | boolean | EnvironmentVariable | readonly ConfigValue[] | ConfigMap;
interface ConfigMap {
  /** Undefined members are left out. */
  readonly [member: string]: ConfigValue | undefined;
}

function render(map: ConfigMap): string {
  return `${members(map, "").join("\n")}\n`;
}

function members(map: ConfigMap, indent: string): string[] {
  return Object.entries(map).flatMap(([member, value]) =>
    value === undefined ? [] : `${indent}${member}: ${literal(value, indent)}`,
  );
}

/** Values are written as JSON: a quoted string is never read as a variable or a duration. */
function literal(value: ConfigValue, indent: string): string {
  if (typeof value !== "object") return JSON.stringify(value);
  if (value instanceof EnvironmentVariable) return `$${value.name}`;
  const inner = `${indent}  `;
  const lines = Array.isArray(value)
    ? value.map((item: ConfigValue) => `${inner}${literal(item, inner)}`)
    : members(value as ConfigMap, inner);
  const [open, close] = Array.isArray(value) ? ["[", "]"] : ["{", "}"];
  return lines.length === 0 ? open + close : `${open}\n${lines.join("\n")}\n${indent}${close}`;
}

import { promises as dns, type LookupAddress } from "node:dns";
import { networkInterfaces } from "node:os";
import ipaddr from "ipaddr.js";

type IpAddress = ipaddr.IPv4 | ipaddr.IPv6;

/** A network by its first address and the length of its prefix. */
export type IpNetwork = readonly [IpAddress, number];

/** Names and addresses that requests may go to. */
export interface Guard {
  /** Why requests may not go to a URL, as far as it says so by itself; null where they may. */
  refuse(url: string): string | null;
  /** The addresses of a host. Throws {@link AddressRefused} unless requests may go to this port of all of them. */
  resolve(host: string, port: number): Promise<readonly LookupAddress[]>;
  /** Whether plain HTTP is allowed to this address. */
  isAllowedNetwork(address: string): boolean;
}

/** An address that requests may not go to. The message names none: it may be known inside alone. */
export class AddressRefused extends Error {
  override readonly name = "AddressRefused";
}

export interface GuardOptions {
  readonly allowed: readonly IpNetwork[];
  /** Where the mesh is reached: no request goes to the host and port of such a URL. */
  readonly ownUrls: readonly string[];
  /** Where its gateway listens: none goes to the port of such a URL on an address of its host either. */
  readonly ownListeners: readonly string[];
  /** Default: the system's resolver. */
  readonly lookup?: (host: string) => Promise<readonly LookupAddress[]>;
}

const lookupAll = (host: string) => dns.lookup(host, { all: true, verbatim: true });

/**
 * Allows `https:` to public addresses, and also `http:` within the allowed networks. A name is resolved for each
 * connection, which then goes to an address that was checked.
 */
export function createGuard({ allowed, ownUrls, ownListeners, lookup = lookupAll }: GuardOptions): Guard {
  const listeners = ownListeners.map((url) => placeOf(new URL(url)));
  const ownPlaces = [...listeners, ...ownUrls.map((url) => placeOf(new URL(url)))];

  async function addressesOf(host: string): Promise<readonly LookupAddress[]> {
    if (ipaddr.isValid(host)) return [{ address: host, family: host.includes(":") ? 6 : 4 }];
    return await lookup(host);
  }

  /** Whether the gateway listens there; a listener of all addresses has those of this machine. */
  async function isOwn(address: string, port: number): Promise<boolean> {
    for (const listener of listeners) {
      if (listener.port !== port) continue;
      // A connection to no address is one to this machine.
      if (isUnspecified(address)) return true;
      if (isUnspecified(listener.host)) {
        if (isOfThisMachine(address)) return true;
        continue;
      }
      const own = await addressesOf(listener.host).catch(() => []);
      if (own.some((one) => isSame(one.address, address))) return true;
    }
    return false;
  }

  const isAllowedNetwork = (text: string): boolean => {
    const address = plainAddress(text);
    return allowed.some(
      ([network, length]) => network.kind() === address?.kind() && address.match(network, length),
    );
  };
  const isAllowed = (text: string) => isPublic(text) || isAllowedNetwork(text);

  return {
    isAllowedNetwork,
    refuse(text) {
      const url = URL.parse(text);
      if (url === null) return "is no URL";
      if (url.protocol !== "https:" && url.protocol !== "http:") return "must begin with https://";
      if (url.username !== "" || url.password !== "") return "must hold no user and no password";
      if (url.protocol === "http:" && allowed.length === 0) return "must begin with https://";
      const { host, port } = placeOf(url);
      if (ownPlaces.some((own) => own.host === host && own.port === port)) return "is of the mesh itself";
      if (!ipaddr.isValid(host)) return null;
      if (!isAllowed(host)) return "is an address that is not public";
      return url.protocol === "http:" && !isAllowedNetwork(host) ? "must begin with https://" : null;
    },
    async resolve(host, port) {
      const addresses = await addressesOf(host);
      if (addresses.length === 0) throw new AddressRefused("the name has no address");
      if (!addresses.every(({ address }) => isAllowed(address)))
        throw new AddressRefused("an address of the name is not public");
      for (const { address } of addresses)
        if (await isOwn(address, port))
          throw new AddressRefused("an address of the name is of the mesh itself");
      return addresses;
    },
  };
}

/** Where requests to a URL go. */
interface HostPort {
  /** A name in lower case, without a dot at its end; an IPv6 address without its brackets. */
  readonly host: string;
  readonly port: number;
}

/** The host and the port of a URL. */
export function placeOf({ hostname, port, protocol }: URL): HostPort {
  const host = hostname.replace(/^\[|\]$/g, "").replace(/\.$/, "");
  return { host, port: port === "" ? (protocol === "https:" ? 443 : 80) : Number(port) };
}

function isUnspecified(text: string): boolean {
  return plainAddress(text)?.range() === "unspecified";
}

function isOfThisMachine(text: string): boolean {
  if (plainAddress(text)?.range() === "loopback") return true;
  const own = Object.values(networkInterfaces()).flatMap((addresses = []) => addresses);
  return own.some(({ address }) => isSame(address, text));
}

function isSame(one: string, other: string): boolean {
  return plainAddress(one)?.toNormalizedString() === plainAddress(other)?.toNormalizedString();
}

const globalUnicast = ipaddr.parseCIDR("2000::/3");
/** The IPv4 address is in the last 32 bits. */
const nat64 = ipaddr.parseCIDR("64:ff9b::/96");

/** The address; the IPv4 address that an IPv6 address is another form of. */
function plainAddress(text: string): IpAddress | null {
  if (!ipaddr.isValid(text)) return null;
  const address = ipaddr.parse(text);
  if (!isIpv6(address)) return address;
  if (address.isIPv4MappedAddress()) return address.toIPv4Address();
  const bytes = address.toByteArray();
  if (address.match(nat64)) return new ipaddr.IPv4(bytes.slice(12));
  // 6to4
  if (bytes[0] === 0x20 && bytes[1] === 0x02) return new ipaddr.IPv4(bytes.slice(2, 6));
  return address;
}

/** The host of each virtual machine of Azure, which answers to it alone; no registry of IANA has it. */
const azureHost = "168.63.129.16";

/** Whether the whole Internet reaches an address: neither private nor special, by the registries of IANA. */
export function isPublic(text: string): boolean {
  const address = plainAddress(text);
  if (address?.toString() === azureHost) return false;
  if (address === null || address.range() !== "unicast") return false;
  return !isIpv6(address) || address.match(globalUnicast);
}

function isIpv6(address: IpAddress): address is ipaddr.IPv6 {
  return address.kind() === "ipv6";
}

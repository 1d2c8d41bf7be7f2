import { promises as dns, type LookupAddress } from "node:dns";
import ipaddr from "ipaddr.js";

type IpAddress = ipaddr.IPv4 | ipaddr.IPv6;

/** A network by its first address and the length of its prefix. */
export type IpNetwork = readonly [IpAddress, number];

/** Names and addresses that requests may go to. */
export interface Guard {
  /** Why requests may not go to a URL, as far as it says so by itself; null where they may. */
  refuse(url: string): string | null;
  /** The addresses of a host. Throws {@link AddressRefused} unless all of them are allowed. */
  resolve(host: string): Promise<readonly LookupAddress[]>;
  /** Whether plain HTTP is allowed to this address. */
  isAllowedNetwork(address: string): boolean;
}

/** An address that requests may not go to. The message names none: it may be known inside alone. */
export class AddressRefused extends Error {
  override readonly name = "AddressRefused";
}

export interface GuardOptions {
  readonly allowed: readonly IpNetwork[];
  /** Default: the system's resolver. */
  readonly lookup?: (host: string) => Promise<readonly LookupAddress[]>;
}

const lookupAll = (host: string) => dns.lookup(host, { all: true, verbatim: true });

/**
 * Allows `https:` to public addresses, and also `http:` within the allowed networks. A name is resolved for each
 * connection, which then goes to an address that was checked.
 */
export function createGuard({ allowed, lookup = lookupAll }: GuardOptions): Guard {
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
      const host = hostOf(url);
      if (!ipaddr.isValid(host)) return null;
      if (!isAllowed(host)) return "is an address that is not public";
      return url.protocol === "http:" && !isAllowedNetwork(host) ? "must begin with https://" : null;
    },
    async resolve(host) {
      const addresses = ipaddr.isValid(host)
        ? [{ address: host, family: host.includes(":") ? 6 : 4 }]
        : await lookup(host);
      if (addresses.length === 0) throw new AddressRefused("the name has no address");
      if (!addresses.every(({ address }) => isAllowed(address)))
        throw new AddressRefused("an address of the name is not public");
      return addresses;
    },
  };
}

/** The host of a URL, an IPv6 address without its brackets. */
export function hostOf({ hostname }: URL): string {
  return hostname.replace(/^\[|\]$/g, "");
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

/** Whether the whole Internet reaches an address: neither private nor special, by the registries of IANA. */
export function isPublic(text: string): boolean {
  const address = plainAddress(text);
  if (address === null || address.range() !== "unicast") return false;
  return !isIpv6(address) || address.match(globalUnicast);
}

function isIpv6(address: IpAddress): address is ipaddr.IPv6 {
  return address.kind() === "ipv6";
}

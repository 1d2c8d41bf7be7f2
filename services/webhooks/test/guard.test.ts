import type { LookupAddress } from "node:dns";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { systemClock } from "@devmesh/service-kit/clock";
import { describe, expect, test } from "@jest/globals";
import ipaddr from "ipaddr.js";
import { createGuard, type Guard, isPublic, placeOf } from "../src/requests/guard.ts";
import { createSender } from "../src/requests/sender.ts";

const { signal: never } = new AbortController();
const loopback = [ipaddr.parseCIDR("127.0.0.0/8"), ipaddr.parseCIDR("::1/128")];

const none = { ownUrls: [], ownListeners: [] };

/** Of each special range of IANA's registries its first or another address. */
const special = [
  ...["0.0.0.0", "0.1.2.3", "10.0.0.1", "10.255.255.255", "100.64.0.1", "100.127.255.255", "127.0.0.1"],
  ...["127.255.255.254", "169.254.0.1", "169.254.169.254", "172.16.0.1", "172.31.255.255", "192.0.0.1"],
  ...["192.0.0.170", "192.0.2.1", "192.88.99.1", "192.168.0.1", "192.168.255.255", "198.18.0.1"],
  ...["198.19.255.255", "198.51.100.1", "203.0.113.1", "224.0.0.1", "239.255.255.255", "240.0.0.1"],
  ...["255.255.255.255", "::", "::1", "fc00::1", "fdff::1", "fe80::1", "febf::1", "fec0::1", "ff02::1"],
  ...["100::1", "2001::1", "2001:2::1", "2001:10::1", "2001:20::1", "2001:db8::1", "3fff::1", "5f00::1"],
  // IPv4 in other forms: mapped, compatible, NAT64, local NAT64, 6to4.
  ...["::ffff:10.0.0.1", "::ffff:7f00:1", "::7f00:1", "64:ff9b::10.0.0.1", "64:ff9b::a9fe:a9fe"],
  ...["64:ff9b:1::1", "2002:0a00:0001::1", "2002:7f00:1::1"],
  // The host of Azure's machines.
  ...["168.63.129.16", "::ffff:168.63.129.16", "64:ff9b::a83f:8110"],
];
const ofInternet = [
  "1.1.1.1",
  "8.8.8.8",
  "172.32.0.1",
  "100.128.0.1",
  "168.63.129.17",
  "2606:4700::1111",
  "2a00:1450::1",
];

describe("the guard", () => {
  test.each(special)("refuses %s", (address) => {
    expect(isPublic(address)).toBe(false);
    const host = address.includes(":") ? `[${address}]` : address;
    expect(createGuard({ ...none, allowed: [] }).refuse(`https://${host}/`)).toBe(
      "is an address that is not public",
    );
  });

  test.each(ofInternet)("allows %s", (address) => {
    expect(isPublic(address)).toBe(true);
  });

  test.each(["2130706433", "0x7f.1", "0177.0.0.1", "127.1", "0x7f000001", "017700000001", "127.0.0.1."])(
    "reads %s as the loopback address",
    (host) => {
      expect(createGuard({ ...none, allowed: [] }).refuse(`https://${host}/`)).toBe(
        "is an address that is not public",
      );
    },
  );

  test.each([
    ["ftp://example.com/", "must begin with https://"],
    ["http://example.com/", "must begin with https://"],
    ["https://ann:secret@example.com/", "must hold no user and no password"],
    ["example.com", "is no URL"],
    ["https://example.com/hook?x=1", null],
  ])("of %s says: %s", (url, reason) => {
    expect(createGuard({ ...none, allowed: [] }).refuse(url)).toBe(reason);
  });

  test("resolves a name each time, and refuses it with one address that is not public", async () => {
    const answers: LookupAddress[][] = [
      [{ address: "1.1.1.1", family: 4 }],
      [{ address: "10.0.0.1", family: 4 }],
      [
        { address: "1.1.1.1", family: 4 },
        { address: "::1", family: 6 },
      ],
      [],
    ];
    const guard = createGuard({ ...none, allowed: [], lookup: async () => answers.shift() ?? [] });
    expect(await guard.resolve("rebinding.example", 443)).toHaveLength(1);
    for (let left = 3; left > 0; left--)
      await expect(guard.resolve("rebinding.example", 443)).rejects.toThrow(/address/);
  });

  test("allows other networks where they are named, also by http", async () => {
    const guard = createGuard({ ...none, allowed: loopback });
    expect(guard.refuse("http://127.0.0.1:8080/")).toBeNull();
    expect(guard.refuse("http://[::ffff:127.0.0.1]/")).toBeNull();
    expect(guard.refuse("http://1.1.1.1/")).toBe("must begin with https://");
    expect(guard.refuse("https://10.0.0.1/")).toBe("is an address that is not public");
  });
});

describe("the guard refuses the mesh as its own receiver", () => {
  const inside = ["127.0.0.0/8", "::1/128", "10.0.0.0/8", "0.0.0.0/8", "::/128"].map((one) =>
    ipaddr.parseCIDR(one),
  );
  const names: Readonly<Record<string, string>> = {
    "mesh.example.com": "1.1.1.1",
    "alias.example.com": "1.1.1.1",
    gateway: "10.0.0.7",
    "gateway.devmesh.svc": "10.0.0.7",
    localhost: "127.0.0.1",
    "here.example.com": "127.0.0.1",
  };
  const guardOf = (ownListeners: readonly string[]) =>
    createGuard({
      allowed: inside,
      ownUrls: ["https://Mesh.example.com/below"],
      ownListeners,
      lookup: async (host) => [{ address: names[host] ?? "8.8.8.8", family: 4 }],
    });
  async function refusalOf(guard: Guard, url: string): Promise<string | null> {
    const { host, port } = placeOf(new URL(url));
    return (
      guard.refuse(url) ??
      (await guard.resolve(host, port).then(
        () => null,
        (error: Error) => error.message,
      ))
    );
  }

  test.each([
    "https://mesh.example.com/api/v2/devices",
    "https://MESH.example.com.:443/",
    "http://127.0.0.1:8080/",
    "http://127.0.0.1.:8080/",
    "http://0x7f.1:8080/",
    "http://[::ffff:127.0.0.1]:8080/",
    "http://localhost:8080/",
    "http://here.example.com:8080/",
    "http://0.0.0.0:8080/",
    "http://[::]:8080/",
    "http://gateway/",
    "http://gateway.devmesh.svc/",
    "http://10.0.0.7/",
  ])("at %s", async (url) => {
    expect(await refusalOf(guardOf(["http://127.0.0.1:8080", "http://gateway"]), url)).toMatch(
      /of the mesh itself$/,
    );
  });

  test.each([
    "https://mesh.example.com:8443/",
    "https://alias.example.com/",
    "http://127.0.0.1:8081/",
    "http://127.0.0.2:8080/",
    "http://gateway:8080/",
    "http://10.0.0.8/",
  ])("but not %s", async (url) => {
    expect(await refusalOf(guardOf(["http://127.0.0.1:8080", "http://gateway"]), url)).toBeNull();
  });

  test("at each address of the machine where the gateway listens on all of them", async () => {
    const guard = guardOf(["http://0.0.0.0:8080"]);
    for (const host of ["127.0.0.1", "127.0.0.2", "[::1]", "0.0.0.0", "localhost"])
      expect([host, await refusalOf(guard, `http://${host}:8080/`)]).toEqual([
        host,
        expect.stringMatching(/of the mesh itself$/),
      ]);
    expect(await refusalOf(guard, "http://10.0.0.8:8080/")).toBeNull();
  });

  test("also when a name leads there only at the next connection", async () => {
    let address = "127.0.0.2";
    const guard = createGuard({
      allowed: inside,
      ownUrls: [],
      ownListeners: ["http://127.0.0.1:1"],
      lookup: async () => [{ address, family: 4 }],
    });
    const sender = createSender({ guard, clock: systemClock });
    const send = () => sender.send({ url: "http://rebinding.example:1/", body: "", headers: {} }, never);
    expect(await send()).toMatchObject({ error: "ECONNREFUSED" });
    address = "127.0.0.1";
    expect(await send()).toMatchObject({ error: "an address of the name is of the mesh itself" });
    sender.close();
  });
});

describe("a request", () => {
  async function receiver(respond: Parameters<typeof createServer>[1]) {
    const server = createServer(respond as never);
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    const { port } = server.address() as AddressInfo;
    return {
      port,
      async [Symbol.asyncDispose]() {
        server.closeAllConnections();
        await new Promise((resolve) => server.close(resolve));
      },
    };
  }
  const post = (url: string) => ({ url, body: "{}", headers: {} });

  test("goes to the address that was checked, with the name in Host, and checks each connection", async () => {
    const hosts: unknown[] = [];
    await using server = await receiver((request, response) => {
      hosts.push(request.headers.host);
      response.setHeader("Connection", "close");
      response.end();
    });
    let answer = "127.0.0.1";
    const guard = createGuard({
      ...none,
      allowed: loopback,
      lookup: async () => [{ address: answer, family: 4 }],
    });
    const sender = createSender({ guard, clock: systemClock });
    const url = `http://receiver.example:${server.port}/`;
    expect(await sender.send(post(url), never)).toMatchObject({ status: 200, error: null });
    answer = "192.168.0.1";
    expect(await sender.send(post(url), never)).toMatchObject({
      status: null,
      error: "an address of the name is not public",
    });
    expect(hosts).toEqual([`receiver.example:${server.port}`]);
    sender.close();
  });

  test("follows no redirect, and reads no more than 16 KB of an answer", async () => {
    const paths: unknown[] = [];
    await using server = await receiver((request, response) => {
      paths.push(request.url);
      if (request.url === "/redirect") response.writeHead(302, { Location: "/other" }).end();
      else {
        const chunk = Buffer.alloc(4_096);
        const write = () => {
          while (!response.destroyed && response.write(chunk));
        };
        response.on("drain", write);
        write();
      }
    });
    const sender = createSender({ guard: createGuard({ ...none, allowed: loopback }), clock: systemClock });
    const base = `http://127.0.0.1:${server.port}`;
    expect(await sender.send(post(`${base}/redirect`), never)).toMatchObject({
      status: 302,
      error: "status 302",
    });
    expect(await sender.send(post(`${base}/endless`), never)).toMatchObject({ status: 200, error: null });
    expect(paths).toEqual(["/redirect", "/endless"]);
    sender.close();
  });

  test("says why there was none, in words that are not the receiver's", async () => {
    const sender = createSender({ guard: createGuard({ ...none, allowed: loopback }), clock: systemClock });
    expect(await sender.send(post("http://127.0.0.1:1/"), never)).toEqual({
      status: null,
      error: "ECONNREFUSED",
      retryAfterMs: null,
    });
    sender.close();
  });
});

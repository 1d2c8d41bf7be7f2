import { expect, test } from "@jest/globals";
import { parseStoreUrl } from "../src/store-url.ts";

test.each([
  ["sqlite:/var/lib/keys.db", "/var/lib/keys.db"],
  ["sqlite:///var/lib/keys.db", "/var/lib/keys.db"],
  ["sqlite::memory:", ":memory:"],
])("%s is a SQLite file", (url, path) => {
  expect(parseStoreUrl(url)).toEqual({ kind: "sqlite", path });
});

test.each([
  ["mongodb://localhost/keys", "keys"],
  ["mongodb://user:p%40ss@a:27017,b:27018/devmesh_keys?replicaSet=rs0&tls=true", "devmesh_keys"],
  ["mongodb+srv://user:secret@cluster.example.org/keys?retryWrites=true", "keys"],
])("%s is a MongoDB database", (url, database) => {
  expect(parseStoreUrl(url)).toEqual({ kind: "mongodb", url, database });
});

test.each([
  "",
  "keys.db",
  "postgres://user:secret@host/keys",
  "mongodb://user:secret@host",
  "mongodb://user:secret@host/",
  "mongodb://user:secret@host/?replicaSet=rs0",
  "mongodb://user:secret@host/a.b",
  "mongodb:///keys",
])("'%s' is refused without being repeated", (url) => {
  expect(() => parseStoreUrl(url)).toThrow(/^STORE_URL must /);
  expect(() => parseStoreUrl(url)).not.toThrow(/secret/);
});

import { openSqliteDataStore } from "../src/store/data-store.sqlite.ts";

/** Rolls up the SQLite store at a path, and prints a line before each part and at the end. */
const store = openSqliteDataStore(process.argv[2] ?? "", { readers: 1 });
do process.stdout.write("part\n");
while ((await store.rollUp()) === "more");
process.stdout.write("done\n");
await store.close();

/** Numbers of one device in DuckDB: one row a second, with the number in a column. */
import { DuckDBInstance } from "@duckdb/node-api";
import { reportReady } from "../child.ts";
import { numberInSql, seriesStart } from "./sample-numbers.ts";

const seconds = Number(process.env.SERIES_SECONDS);
const instance = await DuckDBInstance.create(process.env.SERIES_PATH ?? "", { threads: "1" });
const db = await instance.connect();
await db.run("CREATE TABLE records (stored_at TIMESTAMP, topic VARCHAR, celsius DOUBLE)");
await db.run(`
  INSERT INTO records
  SELECT make_timestamp(${seriesStart}000::BIGINT + nth * 1000000), 'db/pump/temp', ${numberInSql}
  FROM range(${seconds}) numbers (nth)`);
await db.run("CHECKPOINT");
const hours = await db.prepare(`
  SELECT time_bucket(INTERVAL '1 hour', stored_at) AS hour, count(*), min(celsius), max(celsius), sum(celsius)
  FROM records WHERE topic = 'db/pump/temp' GROUP BY hour ORDER BY hour`);

process.on("message", async () => {
  const begun = performance.now();
  const rows = await (await hours.runAndReadAll()).getRows();
  const ms = performance.now() - begun;
  process.send?.({ ms, spans: rows.length, sum: rows.reduce((sum, row) => sum + Number(row[4]), 0) });
});
reportReady();

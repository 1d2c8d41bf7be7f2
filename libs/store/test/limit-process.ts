import { openLimitedThings } from "./limited-things.ts";

/** A replica that hangs between two steps: of an insert before the thing is stored, of a removal after it is gone. */
const [, , storeUrl = "", step] = process.argv;
const { signal } = new AbortController();
const things = await openLimitedThings(storeUrl, signal);

async function hang(): Promise<never> {
  process.stdout.write("between\n");
  return await new Promise(() => undefined);
}

if (step === "insert") await things.limit.insert(2, hang, signal);
else {
  await things.limit.remove(async () => {
    await things.drop("one");
    return await hang();
  }, signal);
}

import { defineContract, done, doneIfRepeated } from "@devmesh/contracts/contract";
import { calls } from "@devmesh/contracts/topology";
import type { Implementation } from "@devmesh/service-kit/rpc/implementation";
import { z } from "zod";

const nobody_here = { code: "not_found", when: "There is nobody of that name." } as const;

/** A small contract that has each kind of method. */
export const greeter = defineContract({
  service: "greeter",
  version: 1,
  methods: {
    greet: {
      in: z.strictObject({ name: z.string().min(1), again: z.object({ times: z.int() }).optional() }),
      out: z.object({ text: z.string() }),
      deadlineMs: 30_000,
      idempotent: true,
      errors: {
        nobody_here,
        guest_rude: { code: "internal", when: "The guest answered badly." },
        too_many: {
          code: "resource_exhausted",
          when: "Too many greetings.",
          details: z.object({ most: z.int(), names: z.string().optional() }),
        },
      },
    },
    wait: {
      in: z.object({ ms: z.int() }),
      out: z.object({ waitedMs: z.number() }),
      deadlineMs: 30_000,
      idempotent: false,
      errors: {},
    },
    relay: {
      in: z.object({ ms: z.int() }),
      out: z.object({ remainingMs: z.number(), traceId: z.string(), requestId: z.string() }),
      deadlineMs: 5_000,
      idempotent: false,
      errors: {},
    },
    dismiss: {
      in: z.object({ name: z.string() }),
      out: done,
      deadlineMs: 30_000,
      idempotent: true,
      errors: { nobody_here: doneIfRepeated(nobody_here) },
    },
    fill: {
      in: z.object({ bytes: z.int() }),
      out: z.object({ text: z.string() }),
      deadlineMs: 30_000,
      idempotent: true,
      errors: {},
    },
  },
});

/** A dependency on all that the greeter answers. */
export const everyMethod = calls(greeter, ["greet", "wait", "relay", "dismiss", "fill"]);

/** An implementation whose methods a test replaces one by one. */
export function greetings(
  replaced: Partial<Implementation<typeof greeter>> = {},
): Implementation<typeof greeter> {
  return {
    greet: async ({ name }, context) => {
      if (name === "nobody") return context.fail("nobody_here");
      if (name === "boor") return context.fail("guest_rude");
      if (name === "everybody") return context.fail("too_many", { most: 3 });
      if (name === "legion") return context.fail("too_many", { most: 3, names: "x".repeat(2_000_000) });
      return { text: `hello ${name}` };
    },
    wait: async ({ ms }, context) => {
      const startedAt = performance.now();
      await context.deadline.clock.sleep(ms, context.signal);
      return { waitedMs: performance.now() - startedAt };
    },
    relay: async (_, { deadline, trace, requestId }) => ({
      remainingMs: deadline.remainingMs(),
      traceId: trace.traceId,
      requestId: requestId ?? "",
    }),
    dismiss: async ({ name }, context) => (name === "nobody" ? context.fail("nobody_here") : {}),
    fill: async ({ bytes }) => ({ text: "x".repeat(bytes) }),
    ...replaced,
  };
}

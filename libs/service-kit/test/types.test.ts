import { calls } from "@devmesh/contracts/topology";
import { greeter } from "@devmesh/testkit/sample-mesh/greeter";
import { describe, expect, test } from "@jest/globals";
import type { CallContext, Context } from "../src/rpc/context.ts";
import type { Client, Implementation } from "../src/rpc/implementation.ts";

/*
 * What must not compile. `tsc` checks this file: an `@ts-expect-error` above a line that compiles is an error itself.
 */
describe("a contract's types", () => {
  test("refuse undeclared reasons, methods, members and details", () => {
    type Greet = Context<typeof greeter, "greet">;
    const checks = [
      (context: Greet) => context.fail("nobody_here"),
      (context: Greet) => context.fail("too_many", { most: 1 }),
      // @ts-expect-error: not a reason of this method
      (context: Greet) => context.fail("no_such_reason"),
      // @ts-expect-error: the kit's own reasons are not the handler's to give
      (context: Greet) => context.fail("internal"),
      // @ts-expect-error: details are declared
      (context: Greet) => context.fail("too_many"),
      // @ts-expect-error: details match their schema
      (context: Greet) => context.fail("too_many", { most: "1" }),
      // @ts-expect-error: no details are declared
      (context: Greet) => context.fail("nobody_here", {}),
      (client: Client<typeof greeter, "greet">, call: CallContext) => client.greet({ name: "Ada" }, call),
      // @ts-expect-error: not declared to be called
      (client: Client<typeof greeter, "greet">, call: CallContext) => client.wait({ ms: 1 }, call),
      // @ts-expect-error: not the method's input
      (client: Client<typeof greeter, "greet">, call: CallContext) => client.greet({ nome: "Ada" }, call),
      // @ts-expect-error: a call inherits its caller's time
      (client: Client<typeof greeter, "greet">) => client.greet({ name: "Ada" }),
      // @ts-expect-error: no such method
      () => calls(greeter, ["grete"]),
      // @ts-expect-error: methods are missing
      (): Implementation<typeof greeter> => ({ greet: async () => ({ text: "" }) }),
      // @ts-expect-error: not the method's output
      (): Pick<Implementation<typeof greeter>, "greet"> => ({ greet: async () => ({ txt: "" }) }),
    ];
    expect(checks).toHaveLength(14);
  });
});

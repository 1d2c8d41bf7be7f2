import type { ContractDeclaration } from "@devmesh/contracts/contract";
import type { Implementation } from "@devmesh/service-kit/implementation";

/** A contract of which a test needs a few methods; the others fail. */
export function onlyThese<C extends ContractDeclaration>(
  contract: C,
  methods: Partial<Implementation<C>>,
): Implementation<C> {
  const others = Object.keys(contract.methods).map((method) => [
    method,
    async () => {
      throw new Error(`${method} has no fake`);
    },
  ]);
  return { ...Object.fromEntries(others), ...methods };
}

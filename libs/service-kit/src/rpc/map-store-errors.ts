import type { ContractDeclaration } from "@devmesh/contracts/contract";
import { ServiceError } from "../errors.ts";
import type { Implementation } from "./implementation.ts";

type StoreMethod = (input: unknown, context: unknown) => Promise<unknown>;

/**
 * Turns errors of a store that is not available into `unavailable`, so that callers retry instead of getting
 * `internal`.
 */
export function mapStoreErrors<C extends ContractDeclaration>(
  implementation: Implementation<C>,
  isAway: (error: unknown) => boolean,
): Implementation<C> {
  const methods = Object.entries(implementation as Record<string, StoreMethod>).map(([name, method]) => {
    const guarded: StoreMethod = async (input, context) => {
      try {
        return await method(input, context);
      } catch (error) {
        throw isAway(error) ? ServiceError.of("unavailable", { cause: error }) : error;
      }
    };
    return [name, guarded];
  });
  return Object.fromEntries(methods) as Implementation<C>;
}

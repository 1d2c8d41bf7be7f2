import type { ContractDeclaration } from "@devmesh/contracts/contract";
import { ServiceError } from "./errors.ts";
import type { Implementation } from "./implementation.ts";

type Method = (input: unknown, context: unknown) => Promise<unknown>;

/**
 * The same implementation, whose callers are told `unavailable` (try again) instead of `internal` where a method
 * throws what `isAway` recognises: a store that cannot be reached now, say.
 */
export function mapStoreErrors<C extends ContractDeclaration>(
  implementation: Implementation<C>,
  isAway: (error: unknown) => boolean,
): Implementation<C> {
  const methods = Object.entries(implementation as Record<string, Method>).map(([name, method]) => {
    const guarded: Method = async (input, context) => {
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

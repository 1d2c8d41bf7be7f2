import { createContext, useContext } from "react";
import type { ApiClient } from "./api-client.ts";

/** The client of who is signed in. */
export const ApiContext = createContext<ApiClient | null>(null);

/** The client of who is signed in; only below the sign-in. */
export function useApi(): ApiClient {
  const api = useContext(ApiContext);
  if (api === null) throw new Error("nobody is signed in here");
  return api;
}

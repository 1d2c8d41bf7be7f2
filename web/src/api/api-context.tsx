import { createContext, useContext } from "react";
import type { ApiClient } from "./api-client.ts";

/** The client of the session. */
export const ApiContext = createContext<ApiClient | null>(null);

/** The client of the session. */
export function useApi(): ApiClient {
  const api = useContext(ApiContext);
  if (api === null) throw new Error("nobody is signed in here");
  return api;
}

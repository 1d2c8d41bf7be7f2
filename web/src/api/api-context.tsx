import { createSafeContext } from "@mantine/core";
import type { ApiClient } from "./api-client.ts";

/** The client of the session. */
export const [ApiContext, useApi] = createSafeContext<ApiClient>("nobody is signed in here");

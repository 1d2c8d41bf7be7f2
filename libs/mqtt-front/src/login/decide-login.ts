import type { LoginRefusalCode } from "../session/mqtt-connection.ts";

/** A login as `keys` decides it. */
interface LoginQuestion {
  readonly userName: string;
  readonly password: string;
  readonly clientId: string;
  readonly address: string;
}

/** The device that logs in, or why it may not. */
export type LoginAnswer =
  | { readonly deviceId: string }
  | { readonly code: LoginRefusalCode; readonly reason: string };

/** Decides a login; rejects when nobody can. */
export type DecideLogin = (attempt: LoginQuestion) => Promise<LoginAnswer>;

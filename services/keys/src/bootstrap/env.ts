import { z } from "zod";

/** The environment of the Job. */
export const BootstrapEnv = z.object({
  /** Name of the Secret, in the namespace of the Job, that gets the key. */
  MASTER_KEY_SECRET: z
    .string()
    .regex(/^[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?$/, "must be the name of a Secret"),
  /** The API server. */
  KUBERNETES_API_URL: z.url({ protocol: /^https?$/ }).default("https://kubernetes.default.svc"),
  /** Folder with `token` and `namespace` of the Job's service account. */
  SERVICE_ACCOUNT_DIR: z.string().min(1).default("/var/run/secrets/kubernetes.io/serviceaccount"),
});
export type BootstrapEnv = z.infer<typeof BootstrapEnv>;

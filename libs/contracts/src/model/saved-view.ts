import { z } from "zod";

/** Most saved views of an installation. */
export const maxViews = 50;

const ViewName = z
  .string()
  .max(60)
  .regex(/^\S(.*\S)?$/u, "must be one line without blanks around it")
  .describe("What people call it; no other view has this name.");

const ViewQuery = z
  .string()
  .min(1)
  .max(2_048)
  .regex(/^[\w.~!$&'()*+,;=:@/?%-]*$/, "must be the query of a URL, without `?` before it")
  .describe("The query of the dashboard's address below `/devices`.");

const example = { name: "Silent pumps", query: "where=label%3Apump+silent%3A24h&sort=lastSeen" };

/** A list of devices that people come back to: conditions, order and columns. */
export const SavedView = z
  .object({ id: z.string().describe("Id of the view in URLs."), name: ViewName, query: ViewQuery })
  .meta({
    id: "SavedView",
    description: "A saved view of the list of devices.",
    example: { id: "7b1d1c1e-6a1f-4f3c-9f55-0f3f8f2f4c11", ...example },
  });
export type SavedView = z.infer<typeof SavedView>;

/** The body of `POST /views`. */
export const ViewInput = z
  .strictObject({ name: ViewName, query: ViewQuery })
  .meta({ id: "ViewInput", description: "A view to save.", example });

/** The body of `POST /views/:id`. */
export const ViewPatch = z.strictObject({ name: ViewName.optional(), query: ViewQuery.optional() }).meta({
  id: "ViewPatch",
  description: "Changes of a saved view; what is left out stays.",
  example: { name: "Silent pumps" },
});

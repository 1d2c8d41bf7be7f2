import { Tag } from "../elements/tag.tsx";

/** The method of an operation; what deletes stands out. */
export function MethodTag({ method }: { readonly method: string }) {
  return <Tag look={method === "DELETE" ? "bad" : method === "GET" ? "plain" : "good"}>{method}</Tag>;
}

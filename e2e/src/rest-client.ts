import { type HttpAnswer, type HttpRequest, httpClient } from "@devmesh/testkit/http";

type Options = Pick<HttpRequest, "headers">;

/** Calls the REST API with a key, or without one. */
export interface RestClient {
  get(path: string, options?: Options): Promise<HttpAnswer>;
  post(path: string, body?: unknown, options?: Options): Promise<HttpAnswer>;
  delete(path: string): Promise<HttpAnswer>;
  send(method: string, path: string, body?: unknown): Promise<HttpAnswer>;
}

/** A client of the API at `url`; paths without a leading `/` are below `/api/v2/`. */
export function restClient(url: string, key: string | null): RestClient {
  const ask = httpClient(url, key);
  const whole = (path: string) => (path.startsWith("/") ? path : `/api/v2/${path}`);
  return {
    get: (path, options) => ask(whole(path), options),
    post: (path, body, options) => ask(whole(path), { method: "POST", body, ...options }),
    delete: (path) => ask(whole(path), { method: "DELETE" }),
    send: (method, path, body) => ask(whole(path), { method, body }),
  };
}

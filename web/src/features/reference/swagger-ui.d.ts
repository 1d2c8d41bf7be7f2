/** The part of Swagger UI (swagger.io, "Configuration" and "Plug points") that the reference uses. */
declare module "swagger-ui-dist/swagger-ui-es-bundle.js" {
  export interface SwaggerRequest {
    readonly url: string;
    readonly method: string;
    readonly headers: Record<string, string>;
    userFetch?: (url: string, init: RequestInit) => Promise<Response>;
  }

  interface SwaggerUi {
    readonly layoutActions: {
      readonly show: (thing: readonly string[], shown: boolean) => void;
      readonly updateFilter: (phrase: string) => void;
    };
  }

  const SwaggerUIBundle: (options: Readonly<Record<string, unknown>>) => SwaggerUi;
  // biome-ignore lint/style/noDefaultExport: the library exports nothing else
  export default SwaggerUIBundle;
}

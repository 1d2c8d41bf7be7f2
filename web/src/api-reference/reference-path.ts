/** Where the reference is; below it, each operation by its id. `/api` itself is the API. */
export const referencePath = "/reference";

/** The release of Devmesh, as in package.json. Contracts and the paths of the API have versions of their own. */
export const release = "0.1.0";

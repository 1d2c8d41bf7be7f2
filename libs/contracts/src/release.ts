/** The release of Devmesh, as in package.json. Contracts and the paths of the API have other versions. */
export const release = "0.1.0";

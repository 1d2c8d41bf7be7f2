// Imported before anything else by what users run; written so that a Node of any age can read it.
const major = Number(process.versions.node.split(".")[0]);
if (major < 20) {
  console.error(`Devmesh needs Node 20 or newer to start; this is ${process.version}.`);
  process.exit(1);
}

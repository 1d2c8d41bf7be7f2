// Run by mongosh as root: one user for each MONGODB_PASSWORD_<SERVICE> of the environment, which reads and writes the
// database of the service's name and no other. A changed password is set again.
const admin = db.getSiblingDB("admin");
for (const [variable, pwd] of Object.entries(process.env)) {
  const [, name] = /^MONGODB_PASSWORD_(?!ROOT$)(\w+)$/.exec(variable) ?? [];
  if (name === undefined) continue;
  const service = name.toLowerCase().replaceAll("_", "-");
  const roles = [{ role: "readWrite", db: service }];
  if (admin.getUser(service) === null) admin.createUser({ user: service, pwd, roles });
  else admin.updateUser(service, { pwd, roles });
}

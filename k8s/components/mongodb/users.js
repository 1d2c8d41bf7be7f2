// Run by mongosh as root: one user a service, which reads and writes the database of its own name and no other.
// Passwords come from the environment; a changed one is set again.
const admin = db.getSiblingDB("admin");
for (const service of ["keys", "devices", "data"]) {
  const pwd = process.env[`MONGODB_PASSWORD_${service.toUpperCase()}`];
  const roles = [{ role: "readWrite", db: service }];
  if (admin.getUser(service) === null) admin.createUser({ user: service, pwd, roles });
  else admin.updateUser(service, { pwd, roles });
}

// Run by `mongosh --nodb`: initiates the replica set where it is not yet, then makes the users. It may run again at
// any time.
const password = encodeURIComponent(process.env.MONGODB_PASSWORD_ROOT);
const hosts = ["mongodb-0.mongodb", "mongodb-1.mongodb", "mongodb-2.mongodb"];

// The set is reached by one member until it is one.
db = connect(`mongodb://root:${password}@${hosts[0]}/admin?directConnection=true`);
try {
  db.adminCommand({ replSetGetStatus: 1 });
} catch (error) {
  if (error.codeName !== "NotYetInitialized") throw error;
  const members = hosts.map((host, at) => ({ _id: at, host: `${host}:27017` }));
  db.adminCommand({ replSetInitiate: { _id: "rs0", members } });
}

// Waits for the primary.
db = connect(`mongodb://root:${password}@${hosts.join(",")}/admin?replicaSet=rs0`);
load("/etc/mongodb/users.js");

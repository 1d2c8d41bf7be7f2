// Run by mongosh as root on mongodb-0, before users.js; does nothing when the replica set is there.
const members = [0, 1, 2].map((at) => ({ _id: at, host: `mongodb-${at}.mongodb:27017` }));
try {
  rs.status();
} catch (error) {
  if (error.codeName !== "NotYetInitialized") throw error;
  rs.initiate({ _id: "rs0", members });
}
while (!db.hello().isWritablePrimary && !db.hello().primary) sleep(1000);

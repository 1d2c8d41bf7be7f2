import { connectMqttDevice } from "@devmesh/testkit/mqtt-device";

// A device in a network of its own: connects, publishes a message at QoS 1, and leaves.

const [url = "", id = "", token = "", tlsCert = ""] = process.argv.slice(2);
const device = await connectMqttDevice({ url, id, token, tlsCert });
await device.publish(`db/${id}/temperature`, "21.5", 1);
await device.leave();
process.stdout.write("acknowledged");

/** Express 5 with NATS requests: the answer of the service passes through as bytes. */
import { z } from "zod";
import { deviceIdPattern } from "./contract.ts";
import { createApp, listen } from "./express-app.ts";
import { checkKey, readDevice } from "./nats-client.ts";

const Params = z.object({ id: z.string().regex(deviceIdPattern) });

const app = createApp(checkKey);
app.get("/api/v2/devices/:id", async (request, response) => {
  const params = Params.safeParse(request.params);
  if (!params.success) {
    response.status(400).json({ issues: params.error.issues });
    return;
  }
  const device = await readDevice(params.data.id);
  if (device === null) response.sendStatus(404);
  else response.type("json").send(device);
});
listen(app);

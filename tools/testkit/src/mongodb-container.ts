import { existsSync } from "node:fs";

/** The image that suites run against with Docker. */
const image = "mongo:8.0";

/** A MongoDB server that nobody else uses. */
export interface MongodbContainer {
  /** `mongodb://HOST:PORT/`, with the options that a single server needs. */
  readonly url: string;
  stop(): Promise<void>;
}

/** Starts a replica set of one server in a container; null without Docker. Throws when the image does not start. */
export async function startMongodbContainer(): Promise<MongodbContainer | null> {
  const host = process.env.DOCKER_HOST;
  if (host === undefined && !existsSync("/var/run/docker.sock")) return null;
  // Loaded only here: it takes a second.
  const { GenericContainer, Wait, getContainerRuntimeClient } = await import("testcontainers");
  try {
    await getContainerRuntimeClient();
  } catch {
    return null;
  }
  const container = await new GenericContainer(image)
    .withCommand(["--replSet", "rs0", "--bind_ip_all"])
    .withExposedPorts(27_017)
    .withWaitStrategy(Wait.forLogMessage(/Waiting for connections/))
    .start();
  const initiate = "rs.initiate({_id: 'rs0', members: [{_id: 0, host: 'localhost:27017'}]})";
  const ready = "while (!db.hello().isWritablePrimary) sleep(50)";
  const { exitCode, output } = await container.exec([
    "mongosh",
    "--quiet",
    "--eval",
    `${initiate}; ${ready}`,
  ]);
  if (exitCode !== 0) {
    await container.stop();
    throw new Error(`${image} does not become a replica set: ${output}`);
  }
  return {
    url: `mongodb://${container.getHost()}:${container.getMappedPort(27_017)}/?directConnection=true`,
    stop: async () => void (await container.stop()),
  };
}

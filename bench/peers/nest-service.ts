/** A NestJS microservice over NATS. Decorators are applied as functions: Node runs the file as it is. */
import "reflect-metadata";
import { Controller, Module } from "@nestjs/common";
import { NestFactory } from "@nestjs/core";
import { MessagePattern, type MicroserviceOptions, Payload, Transport } from "@nestjs/microservices";
import { reportReady } from "../child.ts";
import { nestPatterns } from "./contract.ts";
import { environment } from "./environment.ts";
import { openPeerStore } from "./store.ts";

const store = openPeerStore(environment.storePath);

class DevicesController {
  readDevice(id: string) {
    return store.readDevice(id);
  }

  verifyKey(digest: string) {
    return store.readKey(digest);
  }
}
Controller()(DevicesController);
for (const method of ["readDevice", "verifyKey"] as const) {
  const { prototype } = DevicesController;
  Payload()(prototype, method, 0);
  const descriptor = Object.getOwnPropertyDescriptor(prototype, method);
  if (descriptor) MessagePattern(nestPatterns[method])(prototype, method, descriptor);
}

class ServiceModule {}
Module({ controllers: [DevicesController] })(ServiceModule);

const app = await NestFactory.createMicroservice<MicroserviceOptions>(ServiceModule, {
  transport: Transport.NATS,
  options: { servers: [environment.natsUrl], queue: "service" },
  logger: ["error", "warn"],
});
await app.listen();
reportReady();

/**
 * NestJS on the platform of `BENCH_PLATFORM`, Express or Fastify: a guard, a zod pipe, an interceptor that logs, and a
 * `ClientProxy` over NATS. Decorators are applied as functions: Node runs the file as it is.
 */
import "reflect-metadata";
import type { AddressInfo } from "node:net";
import {
  BadRequestException,
  type CallHandler,
  type CanActivate,
  Controller,
  type ExecutionContext,
  Get,
  Inject,
  Module,
  type NestApplicationOptions,
  type NestInterceptor,
  NotFoundException,
  Param,
  type PipeTransform,
  UnauthorizedException,
  UseGuards,
  UseInterceptors,
} from "@nestjs/common";
import { NestFactory } from "@nestjs/core";
import { type ClientProxy, ClientsModule, Transport } from "@nestjs/microservices";
import { ExpressAdapter, type NestExpressApplication } from "@nestjs/platform-express";
import { FastifyAdapter, type NestFastifyApplication } from "@nestjs/platform-fastify";
import { firstValueFrom, map, type Observable, tap } from "rxjs";
import { z } from "zod";
import { reportReady } from "../child.ts";
import { logRequest } from "./access-log.ts";
import { deviceIdPattern, nestPatterns } from "./contract.ts";
import { environment } from "./environment.ts";
import { type Caller, createKeyCheck } from "./key-check.ts";

const DEVICES = "DEVICES";

class KeyGuard implements CanActivate {
  readonly #check: ReturnType<typeof createKeyCheck>;

  constructor(client: ClientProxy) {
    this.#check = createKeyCheck((digest) =>
      firstValueFrom(client.send<Caller | null>(nestPatterns.verifyKey, digest)),
    );
  }

  async canActivate(context: ExecutionContext) {
    const request = context.switchToHttp().getRequest();
    request.caller = await this.#check(request.headers.authorization);
    if (request.caller === null) throw new UnauthorizedException();
    return true;
  }
}
Inject(DEVICES)(KeyGuard, undefined, 0);

class AccessLog implements NestInterceptor {
  intercept(context: ExecutionContext, next: CallHandler): Observable<unknown> {
    const startedAtMs = performance.now();
    const http = context.switchToHttp();
    return next.handle().pipe(
      tap(() => {
        const { method, url } = http.getRequest();
        logRequest(method, url, http.getResponse().statusCode, startedAtMs);
      }),
    );
  }
}

class ZodPipe<T> implements PipeTransform<unknown, T> {
  readonly #schema: z.ZodType<T>;

  constructor(schema: z.ZodType<T>) {
    this.#schema = schema;
  }

  transform(value: unknown): T {
    const { success, data, error } = this.#schema.safeParse(value);
    if (!success) throw new BadRequestException(error.issues);
    return data;
  }
}

class DevicesController {
  readonly #client: ClientProxy;

  constructor(client: ClientProxy) {
    this.#client = client;
  }

  readDevice(id: string): Observable<object> {
    return this.#client.send<object | null>(nestPatterns.readDevice, id).pipe(
      map((device) => {
        if (device === null) throw new NotFoundException();
        return device;
      }),
    );
  }
}
Inject(DEVICES)(DevicesController, undefined, 0);
Param("id", new ZodPipe(z.string().regex(deviceIdPattern)))(DevicesController.prototype, "readDevice", 0);
const descriptor = Object.getOwnPropertyDescriptor(DevicesController.prototype, "readDevice");
if (descriptor) Get(":id")(DevicesController.prototype, "readDevice", descriptor);
UseGuards(KeyGuard)(DevicesController);
UseInterceptors(AccessLog)(DevicesController);
Controller("api/v2/devices")(DevicesController);

class GatewayModule {}
Module({
  imports: [
    ClientsModule.register([
      { name: DEVICES, transport: Transport.NATS, options: { servers: [environment.natsUrl] } },
    ]),
  ],
  controllers: [DevicesController],
})(GatewayModule);

const options: NestApplicationOptions = { logger: ["error", "warn"], bodyParser: false };
async function create() {
  if (process.env.BENCH_PLATFORM === "fastify")
    return await NestFactory.create<NestFastifyApplication>(GatewayModule, new FastifyAdapter(), options);
  const app = await NestFactory.create<NestExpressApplication>(GatewayModule, new ExpressAdapter(), options);
  app.disable("x-powered-by");
  app.disable("etag");
  return app;
}
const app = await create();
await app.listen(0, "127.0.0.1");
reportReady((app.getHttpServer().address() as AddressInfo).port);

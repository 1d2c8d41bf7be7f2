# syntax=docker/dockerfile:1
# One image for each service:
#   docker build --build-arg SERVICE=gateway --tag devmesh-gateway .
# All of Devmesh in one container, to try it: nats-server and the services, started as by `npm start`:
#   docker build --target single --tag devmesh .
ARG NODE_IMAGE=node:24.21.0-bookworm-slim@sha256:0e0ff40c39bc087845bfb27465a0df4ea419520094bc35842ff83dd8cbe6f9b6
ARG NATS_IMAGE=nats:2.15.2-alpine

# Knows no SERVICE, so that it runs once for all images.
FROM ${NODE_IMAGE} AS build
WORKDIR /devmesh
COPY . .
# Neither what only development needs, nor the packages that carry Node.
RUN npm pkg delete devDependencies optionalDependencies --workspaces --include-workspace-root
RUN --mount=type=cache,target=/root/.npm npm ci --omit=dev --no-audit --no-fund
RUN npm run build --workspace web && node tools/launcher/src/build/bundle.ts dist/image

# A folder for each service: its programs, and the package.json that makes them ES modules.
FROM build AS services
RUN set -e; mkdir /images; \
  for service in services/*; do \
    image=/images/$(basename $service); \
    cp -a dist/image/$service $image; cp -a $service/package.json $image; \
    dashboard=; [ $service != services/gateway ] || dashboard="--workspace web"; \
    sh tools/launcher/src/build/bill-of-materials.sh $image --workspace $service $dashboard; \
  done
# What the gateway serves.
RUN cp -a --parents web/dist /images/gateway

FROM build AS mesh
RUN mkdir /image && cp -a --parents dist web/dist /image
RUN sh tools/launcher/src/build/bill-of-materials.sh /image
# What the supervisor and the simulated devices need to run; the services are bundled.
RUN --mount=type=cache,target=/root/.npm \
  npm ci --omit=dev --no-audit --no-fund --workspace supervisor --workspace tools/simulator
RUN cp -a --parents package.json node_modules libs supervisor tools/simulator /image

FROM ${NATS_IMAGE} AS nats

FROM ${NODE_IMAGE} AS single
LABEL org.opencontainers.image.title=devmesh \
      org.opencontainers.image.licenses=Apache-2.0
# Docker ends a container 10 s after SIGTERM: running calls have 3 s.
ENV NODE_ENV=production \
    NODE_OPTIONS=--disable-warning=ExperimentalWarning \
    MALLOC_ARENA_MAX=2 \
    HOST=0.0.0.0 \
    PUBLIC_URL=http://127.0.0.1:8080 \
    DATA_DIR=/data \
    DRAIN_MS=3000
COPY --from=nats /usr/local/bin/nats-server /usr/local/bin/
WORKDIR /app
COPY --from=mesh /image/ .
# A new volume gets this owner.
RUN install --directory --owner=10001 --group=10001 --mode=700 /data
USER 10001:10001
VOLUME /data
EXPOSE 8080 1883
HEALTHCHECK --interval=15s --timeout=5s --start-period=60s CMD ["node", "supervisor/src/health.ts"]
ENTRYPOINT ["node", "supervisor/src/main.ts"]

FROM ${NODE_IMAGE}
# Less memory, as of `npm start` (service-process.ts, bootstrap.mjs).
ENV NODE_ENV=production \
    NODE_OPTIONS="--disable-warning=ExperimentalWarning --max-semi-space-size=4" \
    MALLOC_ARENA_MAX=2 \
    OPS_HOST=0.0.0.0 \
    OPS_PORT=9090
WORKDIR /app
EXPOSE 9090
HEALTHCHECK --interval=10s --timeout=3s --start-period=30s \
  CMD ["node", "-e", "fetch(`http://127.0.0.1:${process.env.OPS_PORT}/healthz`).then((answer) => process.exit(answer.ok ? 0 : 1), () => process.exit(1))"]
CMD ["node", "main.js"]
ARG SERVICE
RUN test -n "$SERVICE"
LABEL org.opencontainers.image.title=devmesh-$SERVICE \
      org.opencontainers.image.licenses=Apache-2.0
COPY --from=services /images/$SERVICE/ .
USER 10001:10001

# syntax=docker/dockerfile:1
# One image for each service: docker build --build-arg SERVICE=gateway --tag devmesh-gateway .
ARG NODE_IMAGE=node:24.21.0-bookworm-slim@sha256:0e0ff40c39bc087845bfb27465a0df4ea419520094bc35842ff83dd8cbe6f9b6

FROM ${NODE_IMAGE} AS prune
RUN npm install --global --ignore-scripts turbo@2.11.11
WORKDIR /repository
COPY . .
ARG SERVICE
RUN turbo prune "@devmesh/$SERVICE" --docker --production --out-dir pruned
# Removes what only development needs, the Node packages among it, so that npm does not look for it.
RUN cd pruned/json && npm pkg delete devDependencies optionalDependencies --workspaces --include-workspace-root
# The gateway serves the dashboard, which is built with tools of its own; for another service this stays empty.
RUN mkdir -p dashboard/json dashboard/full \
  && if [ "$SERVICE" = gateway ]; then turbo prune @devmesh/web --docker --out-dir dashboard \
  && cd dashboard/json && npm pkg delete devDependencies optionalDependencies; fi

FROM ${NODE_IMAGE} AS dashboard
WORKDIR /build
COPY --from=prune /repository/dashboard/json/ .
RUN --mount=type=cache,target=/root/.npm if [ -e package.json ]; then npm ci --ignore-scripts --no-audit --no-fund; fi
COPY --from=prune /repository/dashboard/full/ .
RUN if [ -e package.json ]; then npm run build --workspace web; else mkdir -p web/dist; fi

FROM ${NODE_IMAGE} AS install
WORKDIR /app
COPY --from=prune /repository/pruned/json/ .
# The packages of this repository stay links: Node strips no types below node_modules.
RUN --mount=type=cache,target=/root/.npm npm ci --omit=dev --ignore-scripts --no-audit --no-fund
COPY --from=prune /repository/pruned/full/ .
# The lean package.json again, and nothing that only tools read.
COPY --from=prune /repository/pruned/json/ .
RUN rm -f package-lock.json turbo.json .npmrc
COPY --from=dashboard /build/web/dist/ web/dist/

FROM ${NODE_IMAGE}
ARG SERVICE
RUN test -n "$SERVICE"
LABEL org.opencontainers.image.title=devmesh-$SERVICE \
      org.opencontainers.image.licenses=Apache-2.0
ENV NODE_ENV=production \
    NODE_OPTIONS=--disable-warning=ExperimentalWarning \
    SERVICE=$SERVICE \
    OPS_HOST=0.0.0.0 \
    OPS_PORT=9090
WORKDIR /app
COPY --from=install /app/ .
USER 10001:10001
EXPOSE 9090
HEALTHCHECK --interval=10s --timeout=3s --start-period=30s \
  CMD ["node", "-e", "fetch(`http://127.0.0.1:${process.env.OPS_PORT}/healthz`).then((answer) => process.exit(answer.ok ? 0 : 1), () => process.exit(1))"]
# The shell only names the service and is gone then: Node itself is process 1 and gets SIGTERM.
CMD ["sh", "-c", "exec node \"services/$SERVICE/src/main.ts\""]

# HAProxy of Debian in place of its own image, for machines without an image registry.
ARG NODE_IMAGE
FROM ${NODE_IMAGE}
RUN apt-get update && apt-get install --yes --no-install-recommends haproxy busybox \
  && ln -s /bin/busybox /usr/local/bin/wget && rm -rf /var/lib/apt/lists/*
STOPSIGNAL SIGUSR1
ENTRYPOINT ["haproxy"]

# The image of `peerdns serve`: Node, the libraries it is linked with, the compiled server and its run-time packages.
# No shell, no package manager, no compiler: nothing but `node` can be started in it.
#
#   docker build -t peerdns:0.1.0 .
#   buildah build --format docker -t peerdns:0.1.0 .        (the OCI format has no HEALTHCHECK)
ARG NODE_IMAGE=docker.io/library/node:26.10.0-bookworm-slim

FROM ${NODE_IMAGE} AS build
WORKDIR /build
COPY package.json package-lock.json .npmrc ./
COPY scripts/run.mjs scripts/build.mjs scripts/bundle.mjs scripts/
# The build runs below, when the sources are there; `prepare` would run it now.
RUN npm ci --ignore-scripts --no-audit --no-fund
COPY tsconfig.json tsconfig.build.json ./
COPY src src
RUN node node_modules/typescript/bin/tsc -p tsconfig.build.json && node scripts/bundle.mjs dist \
  && npm prune --omit=dev --ignore-scripts --no-audit --no-fund
# What only people and compilers read, and npm's own notes.
RUN find node_modules -type f \( -name '*.ts' -o -name '*.map' -o -name '*.md' -o -name '*.flow' \) -delete \
  && rm -rf node_modules/.package-lock.json node_modules/.bin

# The file system of the image: node itself with the libraries that it names, and who its user is.
RUN mkdir -p /image/usr/local/bin /image/etc/peerdns /image/app /image/tmp && chmod 1777 /image/tmp \
  && node_file=$(readlink -f "$(command -v node)") && cp "$node_file" /image/usr/local/bin/node \
  && ldd "$node_file" | sed -n 's|^[^/]*\(/[^ ]*\) .*|\1|p' | while read -r library; do \
       mkdir -p "/image$(dirname "$library")" && cp -L "$library" "/image$library"; \
     done \
  && printf 'root:x:0:0:root:/:/none\npeerdns:x:65532:65532:peerdns:/app:/none\n' > /image/etc/passwd \
  && printf 'root:x:0:\npeerdns:x:65532:\n' > /image/etc/group \
  && printf 'hosts: files dns\n' > /image/etc/nsswitch.conf \
  && cp -R package.json node_modules dist /image/app

# Code that is compiled already: a pod has the files of the image at every start. It is found only where paths, user and
# options of Node are those of the image, so the server runs here as it will there; no API server answers it.
COPY bin /image/app/bin
COPY config /image/app/config
RUN cp -R /image/app /app && mkdir /compiled && chown 65532:65532 /compiled \
  && printf '%s\n' 'cluster: {name: build, source: {kubernetes: {}}}' 'listen: ["127.0.0.1:0"]' \
       'admin: "127.0.0.1:0"' 'forward: []' > /build/config.yaml \
  && { NODE_COMPILE_CACHE=/compiled KUBERNETES_SERVICE_HOST=127.0.0.1 KUBERNETES_SERVICE_PORT=9 setpriv --reuid=65532 --regid=65532 --clear-groups \
       node --max-semi-space-size=4 --heap-growing-percent=50 /app/bin/peerdns.mjs serve --config /build/config.yaml \
       > /build/serve.log & \
     for _ in $(seq 200); do grep -q '"listening"' /build/serve.log && break; sleep 0.2; done; sleep 1; kill $! && wait $!; } \
  && chown -R 0:0 /compiled && chmod -R a+rX /compiled && mv /compiled /image/app/compiled

FROM scratch
COPY --from=build /image /
WORKDIR /app
USER 65532:65532
ENV PATH=/usr/local/bin NODE_ENV=production NODE_COMPILE_CACHE=/app/compiled
EXPOSE 5300/udp 5300/tcp 9153/tcp
# Asks the admin address, as the commands do: where that is another one, set PEERDNS_ADMIN. Kubernetes has its own probes.
HEALTHCHECK --interval=5s --timeout=3s --start-period=5s --retries=3 CMD ["node", "bin/peerdns.mjs", "health"]
# Exec form: SIGTERM reaches the server itself, which then drains. A heap that grows in small steps: bench/scale.ts.
STOPSIGNAL SIGTERM
ENTRYPOINT ["node", "--max-semi-space-size=4", "--heap-growing-percent=50", "bin/peerdns.mjs"]
CMD ["serve", "--config", "/etc/peerdns/config.yaml"]

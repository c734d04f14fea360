# The image of `peerdns serve`: Node, the compiled server and its run-time packages; no compiler, no npm, no shell scripts.
ARG NODE_IMAGE=docker.io/library/node:26.10.0-bookworm-slim

FROM ${NODE_IMAGE} AS build
WORKDIR /build
COPY package.json package-lock.json .npmrc ./
COPY scripts/run.mjs scripts/
# The build runs below, when the sources are there; `prepare` would run it now.
RUN npm ci --ignore-scripts
COPY tsconfig.json tsconfig.build.json ./
COPY src src
RUN node node_modules/typescript/bin/tsc -p tsconfig.build.json && npm prune --omit=dev --ignore-scripts

FROM ${NODE_IMAGE}
# npm and its friends are not needed to serve, and are only more to keep up to date.
RUN rm -rf /usr/local/lib/node_modules /usr/local/bin/npm /usr/local/bin/npx /usr/local/bin/corepack /opt/yarn*
WORKDIR /app
COPY --from=build /build/package.json ./
COPY --from=build /build/node_modules node_modules
COPY --from=build /build/dist dist
COPY bin bin
COPY config config
USER 65532:65532
ENV NODE_ENV=production
EXPOSE 5300/udp 5300/tcp 9153/tcp
# exec form: SIGTERM reaches the server itself, which then drains.
ENTRYPOINT ["node", "bin/peerdns.mjs"]
CMD ["serve", "--config", "/etc/peerdns/config.yaml"]

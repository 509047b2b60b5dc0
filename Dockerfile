# Targets: `app`, which has no sandbox, `sandbox`, and `certifier`, which is the sandbox and the certifier without GDAL.
#   docker build --target app -t marketplace-app .
#   docker build --target sandbox -t marketplace-sandbox .
#   docker build --target certifier -t marketplace-certifier .

# Pin digests by --build-arg NODE_IMAGE=node:24-bookworm-slim@sha256:... and DEBIAN_IMAGE=debian:bookworm-slim@sha256:...
# Both must be of the same Debian release, because Node and GDAL's binding are made on the first and run on the second.
ARG NODE_IMAGE=node:24-bookworm-slim
ARG DEBIAN_IMAGE=debian:bookworm-slim

FROM ${NODE_IMAGE} AS build
WORKDIR /kit
ENV NODE_ENV=production

# Node without its symbols: the images need no npm and no headers.
FROM build AS node
RUN apt-get update \
 && apt-get install -y --no-install-recommends binutils \
 && strip -o /node /usr/local/bin/node

FROM ${DEBIAN_IMAGE} AS base
WORKDIR /kit
ENV NODE_ENV=production \
    HOST=0.0.0.0 \
    GDAL_DATA=/usr/share/gdal \
    PROJ_LIB=/usr/share/proj
RUN apt-get update \
 && apt-get install -y --no-install-recommends libgdal32 bubblewrap tini \
 && rm -rf /var/lib/apt/lists/* /var/cache/apt/* \
 && useradd --create-home --uid 1000 node
COPY --from=node /node /usr/local/bin/node

# Builds the GDAL binding against Debian's GDAL, once for each version of gdal-async.
FROM build AS gdal
ARG GDAL_ASYNC=3.12.3
RUN apt-get update \
 && apt-get install -y --no-install-recommends libgdal-dev g++ make python3 \
 && rm -rf /var/lib/apt/lists/* /var/cache/apt/*
ENV npm_config_shared_gdal=true \
    npm_config_build_from_source=gdal-async \
    npm_config_nodedir=/usr/local \
    JOBS=max
WORKDIR /gdal
RUN --mount=type=cache,target=/root/.npm npm install --ignore-scripts --no-audit --no-fund gdal-async@$GDAL_ASYNC \
 && npm rebuild gdal-async --foreground-scripts

FROM build AS app-modules
COPY package.json package-lock.json deploy/slim-modules.sh ./
RUN --mount=type=cache,target=/root/.npm npm ci --omit=dev --ignore-scripts --no-audit --no-fund \
 && npm sbom --package-lock-only --omit=dev --sbom-format=spdx > sbom.spdx.json \
 && sh slim-modules.sh
COPY --from=gdal /gdal/node_modules/gdal-async/lib/binding node_modules/gdal-async/lib/binding

FROM build AS sandbox-modules
COPY package.json package-lock.json deploy/slim-modules.sh deploy/sandbox-packages.mjs ./
# In the lock file the sandbox's packages are development tools. The other tools are removed.
RUN --mount=type=cache,target=/root/.npm npm ci --include=dev --ignore-scripts --no-audit --no-fund \
 && node sandbox-packages.mjs \
 && npm prune --ignore-scripts --no-audit --no-fund --offline \
 && npm sbom --sbom-format=spdx > sbom.spdx.json \
 && sh slim-modules.sh
COPY --from=gdal /gdal/node_modules/gdal-async/lib/binding node_modules/gdal-async/lib/binding

FROM base AS app
LABEL org.opencontainers.image.title="Marketplace app" \
      org.opencontainers.image.licenses=MIT
COPY --from=app-modules /kit/node_modules node_modules
COPY --from=app-modules /kit/sbom.spdx.json ./
COPY package.json ./
COPY scripts/preload.mjs scripts/preload.mjs
COPY templates/app templates/app
COPY templates/shared templates/shared
COPY src/contract src/contract
COPY src/files src/files
COPY src/child src/child
COPY src/server src/server
COPY src/raster src/raster
COPY src/platform-client src/platform-client
COPY src/steps src/steps
COPY src/app src/app
COPY src/my-app src/my-app
COPY templates/my-app templates/my-app
COPY src/index.ts src/needs.json src/
COPY deploy/executors deploy/executors
COPY src/commands/app.ts src/commands/arguments.ts src/commands/command.ts src/commands/confine.ts src/commands/exec-step.ts src/commands/forget-user.ts src/commands/migrate.ts src/commands/my-app.ts src/commands/ops.ts src/commands/
RUN mkdir -p /data node_modules/.cache && chown node:node /data node_modules/.cache
USER node
ENV DATA_DIR=/data \
    PORT=3000
VOLUME /data
EXPOSE 3000
HEALTHCHECK --interval=10s --timeout=3s --start-period=10s \
  CMD ["node", "-e", "fetch(`http://127.0.0.1:${process.env.PORT}/health`).then((r) => process.exit(r.ok ? 0 : 1), () => process.exit(1))"]
# PID 1 reaps the processes that confined children leave behind.
ENTRYPOINT ["tini", "--"]
CMD ["node", "--import", "./scripts/preload.mjs", "src/commands/app.ts"]

FROM base AS sandbox
LABEL org.opencontainers.image.title="Marketplace sandbox" \
      org.opencontainers.image.licenses=MIT
COPY --from=sandbox-modules /kit/node_modules node_modules
COPY --from=sandbox-modules /kit/sbom.spdx.json ./
COPY package.json ./
COPY scripts/preload.mjs scripts/preload.mjs
COPY src/contract src/contract
COPY src/files src/files
COPY src/child src/child
COPY src/server src/server
COPY src/raster src/raster
COPY src/sandbox src/sandbox
COPY templates/sandbox templates/sandbox
COPY templates/shared templates/shared
COPY src/commands/sandbox src/commands/sandbox
COPY src/commands/sandbox.ts src/commands/arguments.ts src/commands/command.ts src/commands/confine.ts src/commands/wire-profile.ts src/commands/
RUN mkdir -p /data node_modules/.cache && chown node:node /data node_modules/.cache
USER node
VOLUME /data
EXPOSE 4010
HEALTHCHECK --interval=10s --timeout=3s --start-period=10s \
  CMD ["node", "-e", "fetch('http://127.0.0.1:4010/health').then((r) => process.exit(r.ok ? 0 : 1), () => process.exit(1))"]
ENTRYPOINT ["tini", "--"]
CMD ["node", "--import", "./scripts/preload.mjs", "src/commands/sandbox.ts", "--port", "4010", "--data", "/data"]

# The package of the sandbox, as `npm run sandbox-package` makes it.
FROM build AS certifier-modules
COPY package.json package-lock.json tsconfig.json tsconfig.build.json LICENSE ./
RUN --mount=type=cache,target=/root/.npm npm ci --include=dev --ignore-scripts --no-audit --no-fund
COPY scripts scripts
COPY templates templates
COPY examples examples
COPY deploy deploy
COPY src src
WORKDIR /certifier
RUN --mount=type=cache,target=/root/.npm node /kit/scripts/sandbox-package.mjs /tarball \
 && echo '{"name":"certifier","version":"1.0.0","private":true,"type":"module"}' > package.json \
 && npm install --ignore-scripts --no-audit --no-fund /tarball/*.tgz \
 && npm sbom --sbom-format=spdx > sbom.spdx.json \
 && sh /kit/deploy/slim-modules.sh

FROM ${DEBIAN_IMAGE} AS certifier
LABEL org.opencontainers.image.title="Marketplace sandbox and certifier" \
      org.opencontainers.image.licenses=MIT
WORKDIR /certifier
ENV NODE_ENV=production \
    HOST=0.0.0.0
RUN apt-get update \
 && apt-get install -y --no-install-recommends tini libstdc++6 \
 && rm -rf /var/lib/apt/lists/* /var/cache/apt/* \
 && useradd --create-home --uid 1000 node
COPY --from=node /node /usr/local/bin/node
COPY --from=certifier-modules /certifier/node_modules node_modules
COPY --from=certifier-modules /certifier/sbom.spdx.json ./
RUN ln -s /certifier/node_modules/marketplace-sandbox/bin/marketplace-sandbox.mjs /usr/local/bin/marketplace-sandbox \
 && mkdir -p /data /reports node_modules/marketplace-sandbox/node_modules/.cache \
 && chown -R node:node /data /reports node_modules/marketplace-sandbox/node_modules
USER node
VOLUME /data /reports
WORKDIR /reports
EXPOSE 4010
HEALTHCHECK --interval=2s --timeout=3s --start-period=10s \
  CMD ["node", "-e", "fetch('http://127.0.0.1:4010/health').then((r) => process.exit(r.ok ? 0 : 1), () => process.exit(1))"]
ENTRYPOINT ["tini", "--", "marketplace-sandbox"]
CMD ["sandbox", "--port", "4010", "--data", "/data"]

#!/bin/sh
# Removes files from node_modules that an image does not run: sources, source maps, types, documentation, tools for builds, and
# binaries of other machines. A package may have its license in its README.
set -eu
machine="linux-$(node -p process.arch)"
cd node_modules
rm -rf node-linux-* gdal-async/deps gdal-async/build gdal-async/doc better-sqlite3/deps better-sqlite3/src maplibre-gl/src
# Builds of native modules, modules that maplibre-gl's own bundle contains, and its bundle for debugging.
rm -rf node-gyp nan yatag @maplibre maplibre-gl/dist/*-dev.mjs
# Node loads `build/src`; the others are for bundlers.
rm -rf @opentelemetry/*/build/esm @opentelemetry/*/build/esnext
find . -type f \( -name '*.map' -o -name '*.ts' -o -name '*.mts' -o -name '*.cts' -o -name '*.md' \) \
  ! -iname 'licen[cs]e*' ! -iname 'notice*' ! -iname 'copy*' ! -iname 'readme*' -delete
find better-sqlite3/prebuilds -type f ! -name "$machine.node" -delete
if [ -d onnxruntime-node ]; then
  find onnxruntime-node/bin -mindepth 3 -maxdepth 3 -type d ! -path "*/$(echo "$machine" | tr - /)" -exec rm -rf {} +
fi

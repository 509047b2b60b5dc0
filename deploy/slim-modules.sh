#!/bin/sh
# Removes from node_modules what an image does not run: sources, source maps, types, and binaries of other machines.
set -eu
machine="linux-$(node -p process.arch)"
cd node_modules
rm -rf node-linux-* gdal-async/deps gdal-async/build gdal-async/doc better-sqlite3/deps better-sqlite3/src maplibre-gl/src
find . -type f \( -name '*.map' -o -name '*.ts' -o -name '*.mts' -o -name '*.cts' \) -delete
find better-sqlite3/prebuilds -type f ! -name "$machine.node" -delete
if [ -d onnxruntime-node ]; then
  find onnxruntime-node/bin -mindepth 3 -maxdepth 3 -type d ! -path "*/$(echo "$machine" | tr - /)" -exec rm -rf {} +
fi

#!/bin/sh
# Starts the service in the package's folder, for `npm start`, the image and the unit. Only this file has V8's options, which
# src/README.md explains. With exec, signals reach node itself.
exec node --min-semi-space-size=32 --max-semi-space-size=32 --heap-growing-percent=100 --no-allocation-site-pretenuring dist/src/main.js

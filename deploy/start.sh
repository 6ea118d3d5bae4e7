#!/bin/sh
# Starts the service in the package's folder, for `npm start`, the image and the unit. Only this file sets V8's options, which
# src/README.md explains. exec lets signals reach node.
exec node --min-semi-space-size=32 --max-semi-space-size=32 --heap-growing-percent=100 --no-allocation-site-pretenuring dist/src/main.js

#!/bin/sh
# Runs a command as the user of chambers.service, with the unit's settings: as-service.sh chambers doctor, or as-service.sh cp FROM TO.
set -eu
if [ "${1:-}" = chambers ]; then
  shift
  set -- /usr/bin/node /opt/chambers/dist/src/cli.js "$@"
fi
exec systemd-run --quiet --pipe --wait --property=DynamicUser=yes --property=User=chambers --property=StateDirectory=chambers \
  --property=WorkingDirectory=/opt/chambers --property=UMask=0077 --property=EnvironmentFile=/etc/chambers/chambers.env \
  --setenv=NODE_ENV=production --setenv=DATABASE_PATH=/var/lib/chambers/chambers.db \
  --setenv=SERVICE_KEY_FILE=/var/lib/chambers/service-keys.json \
  --setenv=BACKUP_STAMP_FILE=/var/lib/chambers/backups/last-good "$@"

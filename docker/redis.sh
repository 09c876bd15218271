#!/bin/sh
# Starts Redis with the password from the environment, in a file and not on a command line that `ps` shows.
set -eu
umask 077
printf 'requirepass %s\nmaxmemory-policy noeviction\nappendonly yes\ndir /data\n' "$REDIS_PASSWORD" >/tmp/redis.conf
exec redis-server /tmp/redis.conf

#!/bin/sh
# The first pod begins the swarm unless one is there, and the others join it. Options come from KADCRAWL_ variables.
set -eu
case "$POD_NAME" in
    *-0) exec kadcrawl start "$@" ;;
    *) exec kadcrawl join --wait 10m "$@" ;;
esac

#!/usr/bin/env bash
# A stop hook of the kind this project replaces, for `make bench` only: it greps a state file that
# the model writes. It knows no session, counts nothing and leaves no trace.
set -e
STATE_FILE=".gsd/STATE.md"
allow_exit() {
  echo '{"decision": "allow"}'
  exit 0
}
block_exit() {
  echo "{\"decision\": \"block\", \"prompt\": \"$1\"}"
  exit 0
}
[[ -f "$STATE_FILE" ]] || allow_exit
field() {
  grep -A 20 "^loop:" "$STATE_FILE" 2>/dev/null | grep "$1:" | head -1 | awk '{print $2}' || echo "$2"
}
active=$(field active false)
kind=$(field type "")
iteration=$(field iteration 0)
most=$(field max_iterations 20)
paused=$(field paused false)
[[ "$paused" == "true" ]] && allow_exit
[[ "$active" != "true" ]] && allow_exit
[[ "$iteration" -ge "$most" ]] && allow_exit
block_exit "Loop active. Continuing $kind loop iteration $((iteration + 1))/$most."

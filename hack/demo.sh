#!/usr/bin/env bash
# Renders every Windows node of the example AWS cluster into bin/demo/aws and shows what is there.
set -euo pipefail

out=bin/demo/aws
rm -rf "$out"
mkdir -p "$(dirname "$out")"
bin/wmco render --from golden/clusters/common --from golden/clusters/aws --all --out "$out"
find "$out" -type f | sort

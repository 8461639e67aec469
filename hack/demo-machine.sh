#!/usr/bin/env bash
# One machine, simulated in a folder: the node program brings it to its bundle, and keeps it there.
set -euo pipefail

clusters=golden/clusters
out=$PWD/bin/demo
machine=$out/machine
node() { bin/wmco-node --root "$machine" "$@"; }
render() { bin/wmco render --from $clusters/common --from $clusters/none "$@" --facts golden/facts/none.json --node win-a --payload golden/payload --archive -; }

say() { printf '\n%s\n' "$*"; }

show() {
	printf '\n$ %s\n' "$*"
	"$@"
}

# applied SOURCE...: render the example cluster with these sources added, and apply.
applied() {
	printf '\n$ wmco render ... %s --archive - | wmco-node apply\n' "$*"
	render "$@" | node apply -o text | grep -v '^received'
}

mkdir -p "$out"
rm -rf "$machine"
say 'A machine with an empty drive, in a folder. The executables are stand-ins; everything else is as on a node.'
show bin/wmco-node --root "$machine" machine create --facts golden/facts/none-win-a.json
applied

say 'The second run finds nothing to do.'
applied

say 'A set of mirrors comes: a hosts.toml, and no service restarts. Another order of its mirrors: that one file.'
mirrors=golden/transitions/mirror-reordered
applied --from $mirrors/before.yaml
applied --from $mirrors/after.yaml

say 'Somebody edits a file and deletes another. The node program repairs both from what it keeps, without asking anyone.'
printf 'maxPods: 1\r\n' >"$machine/C/k/kubelet.conf"
rm "$machine/C/k/kubelet.exe"
show bin/wmco-node --root "$machine" repair -o text

say 'A change with which the kubelet does not come up is put back: exit status 5.'
cat >"$machine/.machine/behaviour.json" <<'JSON'
{"services": {"kubelet": {"needs": [{"file": "C:\\k\\kubelet.conf", "lacks": "maxPods: 64"}]}}}
JSON
status=0
applied --from $mirrors/after.yaml --from golden/transitions/kubelet-override/settings.yaml || status=$?
[ $status -eq 5 ] || { echo "make: the bad change ended with status $status, not 5" >&2; exit 1; }
rm "$machine/.machine/behaviour.json"
show bin/wmco-node --root "$machine" repair -o text

say 'Cleaned up: only what is not ours stays.'
show bin/wmco-node --root "$machine" cleanup -o text | tail -n 1
show find "$machine/C" -type f

#!/usr/bin/env bash
# A host simulated in a folder: the node agent applies the bundle and repairs drift. Then its image gateway pulls through a mirror.
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
say 'A host with an empty drive, simulated in a folder. The executables are stand-ins; everything else is as on a node.'
show bin/wmco-node --root "$machine" machine create --facts golden/facts/none-win-a.json
applied

say 'The second run finds nothing to do.'
applied

say 'A new set of mirrors adds a hosts.toml and restarts no service. Another order of its mirrors changes that one file.'
mirrors=golden/transitions/mirror-reordered
applied --from $mirrors/before.yaml
applied --from $mirrors/after.yaml

say 'A file is edited and another one is deleted. The node agent repairs both from its content store, without a connection.'
printf 'maxPods: 1\r\n' >"$machine/C/k/kubelet.conf"
rm "$machine/C/k/kubelet.exe"
show bin/wmco-node --root "$machine" repair -o text

say 'A change is rolled back if the kubelet does not become healthy: exit status 5.'
cat >"$machine/.machine/behaviour.json" <<'JSON'
{"services": {"kubelet": {"needs": [{"file": "C:\\k\\kubelet.conf", "lacks": "maxPods: 64"}]}}}
JSON
status=0
applied --from $mirrors/after.yaml --from golden/transitions/kubelet-override/settings.yaml || status=$?
[ $status -eq 5 ] || { echo "make: the bad change ended with status $status, not 5" >&2; exit 1; }
rm "$machine/.machine/behaviour.json"
show bin/wmco-node --root "$machine" repair -o text

say 'After cleanup, only unmanaged files remain.'
show bin/wmco-node --root "$machine" cleanup -o text | tail -n 1
show find "$machine/C" -type f

say 'With mirrors.mode: Exact, the image gateway of the node pulls through a mirror of one repository under another path, which hosts files of containerd
cannot express. An image of a blocked part of the same registry is refused, with the reason that the event of a Pod shows.'
go run ./internal/build/demopull "$out/pull"

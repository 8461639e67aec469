#!/usr/bin/env bash
# The real wmco-node.exe on a Windows under Wine: what hack/demo-machine.sh shows on a simulated machine, with services of
# the real service manager.
#
#	hack/demo-windows.sh          makes the programs, boots a Windows and tells the story beside it
#	hack/demo-windows.sh story    the story, where WINDOWS and DRIVE_C say how to reach one
set -euo pipefail

clusters=golden/clusters
mirrors=golden/transitions/mirror-reordered
out=$PWD/bin/demo/windows
version=v0.0.0-demo

say() { printf '\n%s\n' "$*"; }

fail() {
	echo "make: $*" >&2
	exit 1
}

prepare() {
	rm -rf "$out"
	mkdir -p "$out/payload"
	export GOOS=windows GOARCH=amd64 CGO_ENABLED=0
	build() { go build -trimpath -ldflags "-s -w -X main.version=$version" -o "$out/$1" "$2"; }
	build service.exe ./internal/winnode/stub/service
	build tool.exe ./internal/winnode/testdata/tool
	build kube-log-runner.exe k8s.io/component-base/logs/kube-log-runner
	build wmco-node.exe ./cmd/wmco-node
	unset GOOS GOARCH
	go build -o "$out/standins" ./internal/winnode/cmd/standins
	go build -o "$out/windows" ./internal/winnode/cmd/windows
	"$out/standins" "$out/payload" "$out/service.exe" "$out/kube-log-runner.exe" "$out/wmco-node.exe" $version
}

# told TEXT COMMAND...: run it, show what it prints, demand that it prints the text, and end as it did.
told() {
	local text=$1 status=0
	shift
	"$@" | grep -v '^received' | tee "$out/told" || status=$?
	grep -qF -- "$text" "$out/told" || fail "it was to tell: $text"
	return $status
}

node() { $WINDOWS 'C:\wmco-node.exe' "$@"; }

render() {
	bin/wmco render --from $clusters/common --from $clusters/none "$@" --facts golden/facts/none.json --node win-a \
		--payload "$out/payload" --archive -
}

# applied TEXT SOURCE...: render the example cluster with these sources added, and apply.
applied() {
	local text=$1
	shift
	printf '\n$ wmco render ...%s --archive - | wmco-node.exe apply\n' "${*:+ $*}"
	render "$@" >"$out/bundle"
	told "$text" node apply -o text <"$out/bundle"
}

repaired() {
	printf '\n$ wmco-node.exe repair\n'
	told "$1" node repair -o text
}

story() {
	cp "$out/wmco-node.exe" "$out/tool.exe" "$DRIVE_C"
	$WINDOWS 'C:\tool.exe' hold >"$out/tool.log" & # Wine drops trusted roots unless somebody holds them

	say 'A Windows Server 2022 as Wine has it. The node program and kube-log-runner are real; the other executables stand in for
what they are called, and answer the probes of their services. This machine has no Windows features, no firewall, no
Defender and no container networks, and says so: those entries of the bundle are left aside.'
	applied 'healthy'
	printf '\n$ sc.exe query kubelet\n'
	told 'RUNNING' $WINDOWS sc query kubelet

	say 'The second run finds nothing to do.'
	applied 'same: 0 files written, 0 services started'

	say 'A set of mirrors comes: a hosts.toml, and no service restarts. Another order of its mirrors: that one file.'
	applied ' 0 services started' --from $mirrors/before.yaml
	applied 'applied: 1 file written, 0 services started' --from $mirrors/after.yaml

	say 'Somebody edits a file, deletes another and stops a service; C:\k\notes.txt is theirs. The node program repairs the rest
from what it keeps.'
	echo 'not ours' >"$DRIVE_C/k/notes.txt"
	printf 'maxPods: 1\r\n' >"$DRIVE_C/k/kubelet.conf"
	rm "$DRIVE_C/k/containerd/registries/"*/hosts.toml
	printf '\n$ sc.exe stop windows_exporter\n'
	told 'STATE' $WINDOWS sc stop windows_exporter
	repaired 'start    service windows_exporter'
	repaired 'same: 0 files written, 0 services started'

	say 'A change with which the kubelet does not come up is put back: exit status 5. (This kubelet ends at "maxPods: 64".)'
	status=0
	applied 'rolled back: ' --from $mirrors/after.yaml --from golden/transitions/kubelet-override/settings.yaml || status=$?
	[ $status -eq 5 ] || fail "the bad change ended with status $status, not 5"
	told 'RUNNING' $WINDOWS sc query kubelet
	repaired 'same: 0 files written, 0 services started'

	say 'Cleaned up: only what is not ours stays, and logs.'
	printf '\n$ wmco-node.exe cleanup\n'
	node cleanup -o text | tail -n 1
	[ ! -e "$DRIVE_C/ProgramData/wmco" ] || fail 'C:\ProgramData\wmco is left'
	$WINDOWS sc query kubelet >"$out/told" && fail 'the service kubelet is left'
	left=$(cd "$DRIVE_C" && find k var -type f | sort)
	printf '\n%s\n' "$left"
	[ "$(grep -v '^var/log/' <<<"$left")" = k/notes.txt ] || fail 'files are left, or one that is not ours is gone'
}

case ${1:-} in
story) story ;;
*)
	prepare
	"$out/windows" "$0" story
	;;
esac

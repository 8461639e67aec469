#!/usr/bin/env bash
# wmco-node.exe on Windows under Wine: what hack/demo-machine.sh shows on a simulated host, with the service manager of Wine.
#
#	hack/demo-windows.sh          builds the programs, boots Windows and runs the demo
#	hack/demo-windows.sh story    the demo, on the Windows that WINDOWS and DRIVE_C name
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
	build() { go build -trimpath -ldflags "-s -w -X main.version=$version -X main.wine=yes" -o "$out/$1" "$2"; }
	build service.exe ./internal/test/winnode/stub/service
	build tool.exe ./internal/test/winnode/testdata/tool
	build kube-log-runner.exe k8s.io/component-base/logs/kube-log-runner
	build wmco-node.exe ./cmd/wmco-node
	unset GOOS GOARCH
	go build -o "$out/standins" ./internal/test/winnode/cmd/standins
	go build -o "$out/windows" ./internal/test/winnode/cmd/windows
	"$out/standins" "$out/payload" "$out/service.exe" "$out/kube-log-runner.exe" "$out/wmco-node.exe" $version
}

# prints TEXT COMMAND...: run the command, show its output, fail unless the text is in it, and return its status.
prints() {
	local text=$1 status=0
	shift
	"$@" | grep -v '^received' | tee "$out/printed" || status=$?
	grep -qF -- "$text" "$out/printed" || fail "not in the output: $text"
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
	prints "$text" node apply -o text <"$out/bundle"
}

repaired() {
	printf '\n$ wmco-node.exe repair\n'
	prints "$1" node repair -o text
}

story() {
	cp "$out/wmco-node.exe" "$out/tool.exe" "$DRIVE_C"
	$WINDOWS 'C:\tool.exe' hold >"$out/tool.log" & # without it, Wine removes trusted roots

	say 'A Windows Server 2022 as Wine has it. wmco-node and kube-log-runner are real. The other executables are stand-ins that
answer the probes of their services. Wine has no Windows features, no firewall, no Defender and no container networks: those
entries of the bundle are skipped.'
	applied 'healthy'
	printf '\n$ sc.exe query kubelet\n'
	prints 'RUNNING' $WINDOWS sc query kubelet

	say 'The second run changes nothing.'
	applied 'same: 0 files written, 0 services started'

	say 'A mirror set is added: one hosts.toml, and no service restarts. Its mirrors change their order: one file.'
	applied ' 0 services started' --from $mirrors/before.yaml
	applied 'applied: 1 file written, 0 services started' --from $mirrors/after.yaml

	say 'A file is edited, one is deleted and a service is stopped. wmco-node repairs them from its store, and keeps the unmanaged
C:\k\notes.txt.'
	echo unmanaged >"$DRIVE_C/k/notes.txt"
	printf 'maxPods: 1\r\n' >"$DRIVE_C/k/kubelet.conf"
	rm "$DRIVE_C/k/containerd/registries/"*/hosts.toml
	printf '\n$ sc.exe stop windows_exporter\n'
	prints 'STATE' $WINDOWS sc stop windows_exporter
	repaired 'start    service windows_exporter'
	repaired 'same: 0 files written, 0 services started'

	say 'A change is rolled back if the kubelet does not become healthy: exit status 5. (This kubelet ends with "maxPods: 64".)'
	status=0
	applied 'rolled back: ' --from $mirrors/after.yaml --from golden/transitions/kubelet-override/settings.yaml || status=$?
	[ $status -eq 5 ] || fail "the bad change ended with status $status, not 5"
	prints 'RUNNING' $WINDOWS sc query kubelet
	repaired 'same: 0 files written, 0 services started'

	say 'Cleanup keeps unmanaged files and logs.'
	printf '\n$ wmco-node.exe cleanup\n'
	node cleanup -o text | tail -n 1
	[ ! -e "$DRIVE_C/ProgramData/wmco" ] || fail 'C:\ProgramData\wmco still exists'
	$WINDOWS sc query kubelet >"$out/printed" && fail 'the service kubelet still exists'
	left=$(cd "$DRIVE_C" && find k var -type f | sort)
	printf '\n%s\n' "$left"
	[ "$(grep -v '^var/log/' <<<"$left")" = k/notes.txt ] || fail 'managed files are left, or an unmanaged one is missing'
}

case ${1:-} in
story) story ;;
*)
	prepare
	"$out/windows" "$0" story
	;;
esac

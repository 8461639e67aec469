#!/usr/bin/env bash
# wmco operator in a cluster: a real control plane and five simulated Windows machines. Four become nodes, the fifth says what to do. Then
# a mirror set and a proxy reach the nodes, and nobody connects to them. A bad setting stops at the first node.
#
#	hack/demo-cluster.sh          builds what it needs and runs the demo
#	hack/demo-cluster.sh story    the demo, in a network of its own
#
# With WMCO_IMAGE_ROOT, the operator is the one of an image that was unpacked there, with the payload of the image.
#
# The machines have addresses of 192.0.2.0/24 (RFC 5737) and the account Administrator, so the demo runs in namespaces of its own: nothing
# of this computer's network and accounts changes.
set -euo pipefail
PATH=$PATH:/usr/sbin:/sbin

out=bin/demo/cluster
client=bin/demo/cluster-program
scenes=hack/demo-cluster
clusters=golden/clusters
changes=hack/demo-changes
mirrors=golden/transitions/mirror-added/idms.yaml
# The time limit of each wait, in seconds.
patience=240

say() { printf '\n%s\n' "$*"; }

show() {
	printf '\n$ %s\n' "$*"
	"$@"
}

fail() {
	echo "make: $*" >&2
	if [ -s "$out/operator.log" ]; then
		echo "make: the end of $out/operator.log:" >&2
		tail -n 20 "$out/operator.log" >&2
	fi
	exit 1
}

skip() {
	hack/skip "the demo of the operator in a cluster" "$1"
	exit 0
}

# What the namespaces need: a network with addresses, and an account that is known here only.
namespaces=(unshare --net --mount)
[ "$(id -u)" -eq 0 ] || namespaces=(unshare --user --map-current-user --keep-caps --net --mount)

prepare() {
	local name missing=()
	for name in etcd kube-apiserver kube-controller-manager kube-scheduler; do
		[ -x "${WMCO_TESTENV:-bin/testenv}/$name" ] || missing+=("$name")
	done
	[ ${#missing[@]} -eq 0 ] || skip "no ${missing[*]}: make testenv"
	hack/packages openssh-server iproute2 util-linux || true # they may be installed in another way
	for name in ip unshare; do command -v "$name" >/dev/null || skip "no $name"; done
	"${namespaces[@]}" true 2>/dev/null ||
		skip "this computer refuses ${namespaces[*]}: run as root, in a container with CAP_SYS_ADMIN and CAP_NET_ADMIN"
	rm -rf "$out"
	mkdir -p "$out"
	hack/step "building the program that simulates the hosts" go build -o "$client" ./internal/simnode/cmd/cluster
}

# furnish gives the namespaces their addresses and their account.
furnish() {
	ip link set lo up
	for i in 1 2 3 4 5; do ip address add "192.0.2.1$i/24" dev lo; done
	ip route add default via 192.0.2.254 dev lo # kube-apiserver looks for one
	cp /etc/passwd "$out/passwd"
	echo "Administrator:x:$(id -u):$(id -g)::$PWD/$out:/bin/sh" >>"$out/passwd"
	mount --bind "$out/passwd" /etc/passwd
}

# until_true WHAT COMMAND...: run the command every second until it succeeds.
until_true() {
	local what=$1 end=$((SECONDS + patience))
	shift
	until "$@"; do
		[ $SECONDS -lt $end ] || fail "$what: not within ${patience}s"
		kill -0 "$operator" 2>/dev/null || fail "the operator has ended"
		sleep 1
	done
}

joined() { [ "$("$client" nodes | awk '$2 == "Ready" && $5 != "" && $5 != "-"' | wc -l)" -eq 4 ]; }

# The status says what to do about the fifth host.
told() {
	local status=0
	bin/wmco status >"$out/status" || status=$?
	[ $status -eq 1 ] && grep -q '^HostsJoined is False .*(LoginRefused): 192.0.2.15: .*; fix: ' "$out/status"
}

# In the output of status --watch, after a change: all four have what is published.
all_current() { grep -q 'all 4 nodes are current' "$1"; }

# stopped: the rollout has stopped, because the first node has rolled the change back.
stopped() {
	bin/wmco status -o json >"$out/stopped" || true
	grep -q RolloutStopped "$out/stopped"
}

# logins: how often somebody has logged in to one of the four over SSH.
logins() { cat "$out"/made/win-[1-4]/log | grep -c '^Accepted publickey'; }

# watch FILE: print how the nodes move, to the file too, until unwatch.
watch() {
	printf '\n$ bin/wmco status --watch &\n'
	bin/wmco status --watch > >(tee "$1") &
	watcher=$!
	until_true 'wmco status' test -s "$1"
}

unwatch() {
	kill $watcher
	wait $watcher || true
	watcher=''
}

up() {
	mkfifo "$out/hold" "$out/started"
	"$client" up "$out/made" --load $clusters/common --load $clusters/none/infrastructure.yaml --load $clusters/none/controllerconfig.yaml \
		--load $clusters/none/machineconfigs.yaml --load deploy/crd --load deploy/rbac --load $scenes --locked win-5 \
		win-1=192.0.2.11 win-2=192.0.2.12 win-3=192.0.2.13 win-4=192.0.2.14 win-5=192.0.2.15 <"$out/hold" >"$out/started" &
	cluster=$!
	exec 8>"$out/hold" 9<"$out/started"
	local line='' status=0
	echo
	while [ "$line" != ready ] && read -r line <&9; do echo "$line" | sed "s| $PWD/| |"; done
	[ "$line" != ready ] || return 0
	wait $cluster || status=$?
	[ $status -ne 3 ] || skip 'the line above has the reason'
	fail 'the cluster does not start'
}

# start_operator starts the operator of this folder, or the one of an image: there, as the user of the image, with nothing but its files.
start_operator() {
	local root=${WMCO_IMAGE_ROOT:-} run=(bin/wmco operator --payload golden/payload --node-program bin/wmco-node) config=$PWD/$out/made/operator.kubeconfig
	if [ -n "$root" ]; then
		install -m 0644 "$config" "$root/tmp/kubeconfig"
		config=/tmp/kubeconfig
		run=(chroot --userspec=65532:65532 "$root" /usr/bin/wmco operator --payload /payload)
	fi
	printf '\n$ %s &\n' "${run[*]}"
	KUBECONFIG=$config "${run[@]}" 2>"$out/operator.log" &
	operator=$!
}

story() {
	furnish
	say 'A control plane: etcd, kube-apiserver, kube-controller-manager and kube-scheduler, with the objects of an example cluster. Five hosts
behind OpenSSH servers, with the real wmco-node and a stand-in for the kubelet. win-1 to win-3 are Machines, the others are in
windows-instances. win-5 does not accept the key of the operator. This takes ten seconds or more.'
	up
	export KUBECONFIG=$PWD/$out/made/kubeconfig XDG_CONFIG_HOME=$PWD/$out/config
	show cat $scenes/instances.yaml

	say 'The operator, with exactly the permissions of deploy/rbac. The executables for the hosts are stand-ins.'
	start_operator
	local began=$SECONDS
	watch "$out/joining"
	until_true 'four nodes' joined
	unwatch
	say "Four hosts are nodes after $((SECONDS - began))s."
	show "$client" nodes
	say 'A condition of the operator and an event on the ConfigMap say why the fifth is none, and what to do. So wmco status ends with 1.'
	until_true 'a condition about 192.0.2.15' told
	printf '\n$ bin/wmco status\n'
	cat "$out/status"
	show "$client" events ConfigMap/windows-instances | tee "$out/events"
	grep -q 'LoginRefused: 192.0.2.15: .*; fix: ' "$out/events" || fail 'no event says what to do about 192.0.2.15'

	say 'A mirror set is applied. The nodes fetch what it changes, and nobody connects to them.'
	local before after
	before=$(logins)
	watch "$out/watched"
	show "$client" apply $mirrors
	until_true 'the mirror set on all nodes' all_current "$out/watched"
	unwatch
	after=$(logins)
	[ "$after" -eq "$before" ] || fail "$((after - before)) SSH connections to the nodes meanwhile"
	for i in 1 2 3 4; do
		grep -q mirror.example.com "$out/made/win-$i/machine/C/k/containerd/registries/quay.io/hosts.toml" || fail "win-$i has no hosts.toml for quay.io"
	done
	show grep -o '^\[host[^]]*v2"' "$out/made/win-1/machine/C/k/containerd/registries/quay.io/hosts.toml" # it holds credentials too
	say 'SSH connections to the four nodes meanwhile: 0.'
	[ -z "${WMCO_IMAGE_ROOT:-}" ] || return 0 # what follows says nothing more about an image

	say 'A proxy is set. Services start again with it, after one node has shown that they do; nothing is drained, and nothing boots.'
	watch "$out/proxied"
	show "$client" apply $changes/proxy.yaml
	until_true 'the proxy on all nodes' all_current "$out/proxied"
	unwatch
	show "$client" events Node/win-1
	after=$(logins)
	[ "$after" -eq "$before" ] || fail "$((after - before)) SSH connections to the nodes meanwhile"

	say 'A setting is wrong in a way that only the kubelet knows. The first node tries it, waits two minutes for its kubelet, and rolls back. The
others never see it.'
	watch "$out/broken"
	show "$client" apply $changes/bad-setting.yaml
	until_true 'the end of the rollout' stopped
	unwatch
	printf '\n$ bin/wmco status\n'
	bin/wmco status || true
	local tried
	tried=$(grep -l 'imageGCLowThresholdPercent' "$out"/made/win-[1-4]/machine/C/k/kubelet.conf || true)
	[ -z "$tried" ] || fail "the setting is on $tried"
	say 'The setting is corrected.'
	watch "$out/corrected"
	show "$client" apply $scenes/settings.yaml
	until_true 'all nodes as wanted' all_current "$out/corrected"
	unwatch
}

case ${1:-} in
story)
	operator='' watcher='' cluster=''
	trap 'kill $operator $watcher 2>/dev/null || true; exec 8>&- || true; wait || true' EXIT
	trap 'exit 130' INT TERM
	story
	;;
*)
	prepare
	exec "${namespaces[@]}" "$0" story
	;;
esac

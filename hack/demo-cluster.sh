#!/usr/bin/env bash
# wmco operator in a cluster: a real control plane and five simulated Windows machines. Four become nodes, the fifth says what to do. Then
# a mirror set, a proxy, a new operator and the removal of one reach the nodes without a connection to them. A bad setting stops at the first node.
#
#	hack/demo-cluster.sh          builds what it needs and runs the demo
#	hack/demo-cluster.sh story    the demo, in a network of its own
#
# The demo runs in namespaces of its own: nothing of this computer's network and accounts changes.
set -euo pipefail

out=bin/demo/cluster
client=bin/demo/cluster-program
what='the demo of the operator in a cluster'
scenes=hack/demo-cluster
clusters=golden/clusters
changes=hack/demo-changes
mirrors=golden/transitions/mirror-added/idms.yaml
. hack/simulated-cluster.bash

joined() { [ "$("$client" nodes | awk '$2 == "Ready" && $5 != "" && $5 != "-"' | wc -l)" -eq 4 ]; }

# The status says what to do about the fifth host.
told() {
	local status=0
	bin/wmco status >"$out/status" || status=$?
	# It is wrapped for a terminal.
	[ $status -eq 1 ] && tr -s ' \n' ' ' <"$out/status" | grep '^HostsJoined .*(LoginRefused): 192.0.2.15: .*; fix: ' >/dev/null
}

# In the output of status --watch, after a change: all four have what is published.
all_updated() { grep -q 'all 4 nodes are updated' "$1"; }

# stopped: the rollout has stopped, because the first node has rolled the change back.
stopped() {
	bin/wmco status -o json >"$out/stopped" || true
	grep -q RolloutStopped "$out/stopped"
}

# logins: the number of logins to one of the four over SSH, as their servers count them.
logins() { cat "$out"/made/win-[1-4]/log | grep -c '^Accepted publickey'; }

# no_logins BEFORE: there were none since.
no_logins() {
	local after
	after=$(logins)
	[ "$after" -eq "$1" ] || fail "$((after - $1)) SSH connections to the nodes since they joined"
	say 'SSH connections to the four nodes since they joined: 0.'
	echo $((after - $1)) >"$out/logins"
}

# fetched: all four have the executable that the new operator brings.
fetched() {
	local i
	for i in 1 2 3 4; do cmp -s "$out/csi-proxy" "$out/made/win-$i/machine/C/k/csi-proxy.exe" || return 1; done
}

# removed: win-4 is no node, and nothing of the operator is left on its host.
removed() { ! "$client" nodes | grep '^win-4 ' >/dev/null && [ ! -e "$out/made/win-4/machine/C/k" ]; }

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

# start_operator PAYLOAD
start_operator() {
	printf '\n$ bin/wmco operator --payload %s --node-program bin/wmco-node &\n' "$1"
	KUBECONFIG=$PWD/$out/made/operator.kubeconfig bin/wmco operator --payload "$1" --node-program bin/wmco-node 2>>"$out/operator.log" &
	operator=$!
}

# new_payload writes the executables of a new operator, and serves its image. The settings name it, as the operator's Pod does in a cluster.
new_payload() {
	echo 'csi-proxy of a new operator' >"$out/csi-proxy"
	"$client" payload golden/payload '' "$out/payload" csi-proxy="$out/csi-proxy"
	"$client" registry 127.0.0.1:5000 "$out/payload" >"$out/image" &
	registry=$!
	until_true 'the registry' test -s "$out/image"
	cat >"$out/image.yaml" <<-END
		apiVersion: v1
		kind: ConfigMap
		metadata: {name: windows-machine-config, namespace: openshift-windows-machine-config-operator}
		data: {config.yaml: "{rollout: {settle: 5s}, executables: {from: Registry, image: '$(cat "$out/image")'}}"}
		---
		apiVersion: config.openshift.io/v1
		kind: Image
		metadata: {name: cluster}
		spec: {registrySources: {insecureRegistries: ['127.0.0.1:5000']}}
	END
}

story() {
	furnish
	say 'A control plane: etcd, kube-apiserver and kube-controller-manager, with the objects of an example cluster. Five hosts
behind OpenSSH servers, with the real wmco-node and a stand-in for the kubelet. win-1 to win-3 are Machines, the others are in
windows-instances. win-5 does not accept the key of the operator. This takes ten seconds or more.'
	# The cluster network operator does not run here: trusted-ca is as it would have filled it.
	up --load $clusters/common --load $clusters/none/infrastructure.yaml --load $clusters/none/controllerconfig.yaml \
		--load $clusters/none/machineconfigs.yaml --load $clusters/traits/trusted-ca --load deploy/crd --load deploy/rbac --load deploy/admission --load $scenes --locked win-5
	export KUBECONFIG=$PWD/$out/made/kubeconfig XDG_CONFIG_HOME=$PWD/$out/config
	show cat $changes/instances.yaml
	"$client" apply $changes/instances.yaml >/dev/null

	say 'The operator, with exactly the permissions of deploy/rbac. The executables for the hosts are stand-ins.'
	start_operator golden/payload
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

	say 'A mirror set is applied. The nodes fetch what it changes, without a connection to them.'
	local before
	before=$(logins)
	watch "$out/watched"
	show "$client" apply $mirrors
	until_true 'the mirror set on all nodes' all_updated "$out/watched"
	unwatch
	for i in 1 2 3 4; do
		grep -q mirror.example.com "$out/made/win-$i/machine/C/k/containerd/registries/quay.io/hosts.toml" || fail "win-$i has no hosts.toml for quay.io"
	done
	show grep -o '^\[host[^]]*v2"' "$out/made/win-1/machine/C/k/containerd/registries/quay.io/hosts.toml" # it holds credentials too
	no_logins "$before"

	say 'A proxy is set. Services start again with it, after one node has shown that they do; nothing is drained, and nothing boots.'
	watch "$out/proxied"
	show "$client" apply $changes/proxy.yaml
	until_true 'the proxy on all nodes' all_updated "$out/proxied"
	unwatch
	show "$client" events Node/win-1
	no_logins "$before"

	say 'A setting is wrong in a way that only the kubelet knows. The first node tries it, waits two minutes for its kubelet, and rolls back. The
others never see it.'
	watch "$out/broken"
	show "$client" apply $changes/bad-setting.yaml
	until_true 'the end of the rollout' stopped
	unwatch
	printf '\n$ bin/wmco status\n'
	bin/wmco status || true
	local tried
	tried=$(grep -l 'cpuManagerPolicy' "$out"/made/win-[1-4]/machine/C/k/kubelet.conf || true)
	[ -z "$tried" ] || fail "the setting is on $tried"
	say 'The setting is corrected.'
	watch "$out/corrected"
	show "$client" apply $scenes/settings.yaml
	until_true 'all nodes as wanted' all_updated "$out/corrected"
	unwatch

	say 'A new operator has another csi-proxy. The nodes fetch it from its image.'
	new_payload
	kill $operator
	wait $operator || true
	show "$client" apply "$out/image.yaml"
	start_operator "$out/payload"
	until_true 'the new executable on all nodes' fetched
	no_logins "$before"

	say 'The entry of win-4 is removed. Its node agent removes everything that the operator has put on the host.'
	show "$client" apply $changes/one-instance.yaml
	until_true 'the removal of win-4' removed
	show "$client" nodes
	no_logins "$before"
}

case ${1:-} in
story)
	operator='' watcher='' cluster='' registry=''
	trap 'kill $operator $watcher $registry 2>/dev/null || true; exec 8>&- || true; wait || true' EXIT
	trap 'exit 130' INT TERM
	story
	;;
*)
	prepare
	exec "${namespaces[@]}" "$0" story
	;;
esac

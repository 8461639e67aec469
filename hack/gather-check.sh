#!/usr/bin/env bash
# The image's entry point for must-gather, as `oc adm must-gather` runs it: without arguments, as the image's user, with the service account
# of a namespace that is made for it. What it writes is searched for secrets that are in the cluster, and read back by wmco.
#
#	hack/gather-check.sh ROOT MACHINES OUT
#
# ROOT has what the image has; MACHINES the folders of the nodes win-1 to win-5, which are as published; OUT is a new folder. KUBECONFIG is
# the administrator's (hack/install-check.sh calls it).
set -euo pipefail

root=$1 machines=$2 out=$3
nodes=(win-1 win-2 win-3 win-4 win-5)
operator=openshift-windows-machine-config-operator
own=openshift-must-gather-x7k2p
mounted=var/run/secrets/kubernetes.io/serviceaccount
# What the planted secrets have in common.
mark=planted-0123456789

fail() {
	echo "make: must-gather: $*" >&2
	exit 1
}

# plant puts credentials where people and programs write them.
plant() {
	oc create secret generic planted -n $operator --from-literal=password="$mark-secret"
	oc create configmap planted -n $operator --from-literal=note="https://user:$mark-configmap@mirror.example.com/v2"
	oc annotate node win-1 example.com/note="http://user:$mark-annotation@proxy.example.com:3128"
	oc create -f - <<-EOT
		{apiVersion: v1, kind: Event, metadata: {name: planted, namespace: $operator}, type: Normal, reason: Planted,
		involvedObject: {kind: Deployment, namespace: $operator, name: windows-machine-config-operator}, message: "set HTTPS_PROXY=user:$mark-event@proxy.example.com:3128"}
	EOT
	printf 'time=2026-01-01T00:00:00Z level=INFO msg="pulling https://user:%s-log@registry.example.com/v2/"\n' "$mark" >>"$machines/win-1/machine/C/var/log/wicd/windows-instance-config-daemon.exe.INFO"
}

uproot() {
	oc delete secret,configmap planted -n $operator
	oc delete event planted -n $operator
	oc annotate node win-1 example.com/note-
}

# secrets prints what must not be found: the planted ones, and of each value of a Secret its base64 and its long words. Certificates and
# public keys are no secrets.
secrets() {
	printf '%s\n' "$mark"
	oc get secrets --all-namespaces -o json | jq -r '.items[].data // {} | to_entries[]
		| select(.key | test("\\.crt$|^namespace$") | not) | .value | select(length >= 24) | .[:60], (@base64d | match("[A-Za-z0-9+/=_-]{24,}"; "g").string)' | grep -v '^AAAA' | sort -u
}

# gather runs the entry point in a copy of the image's files, and copies the folder as oc does.
gather() {
	local server to
	server=$(oc config view --minify -o jsonpath='{.clusters[0].cluster.server}')
	cp -al "$root" "$out/root"
	rm -rf "${out:?}/root/var/run/secrets"
	mkdir -p "$out/root/$mounted"
	oc config view --minify --flatten -o jsonpath='{.clusters[0].cluster.certificate-authority-data}' | base64 -d >"$out/root/$mounted/ca.crt"
	oc create token default -n $own >"$out/root/$mounted/token"
	chmod 0444 "$out/root/$mounted"/*
	env -i PATH=/usr/bin HOME=/ KUBERNETES_SERVICE_HOST="$(cut -d/ -f3 <<<"$server" | cut -d: -f1)" KUBERNETES_SERVICE_PORT="${server##*:}" \
		/usr/sbin/chroot --userspec=65532:65532 "$out/root" /bin/bash -c 'while true; do sleep 5; done & /usr/bin/gather; sync' ||
		fail 'the entry point fails'
	to=$out/must-gather.local/registry-example-com-wmco
	mkdir -p "$to"
	/usr/sbin/chroot --userspec=65532:65532 "$out/root" tar -C /must-gather/ -c . | tar -C "$to" -x --no-same-owner
}

# has FILE EXPRESSION: jq says that it is true of a file of the folder.
has() { jq -e "$2" "$from/$1" >/dev/null || fail "$1: not so: $2"; }

# complete checks that the folder has everything of every node, and says what it cannot have.
complete() {
	local node
	for node in "${nodes[@]}"; do
		has "nodes/$node/plan.json" '.applied == .desired and .changes == []'
		has "nodes/$node/report.json" '.state == "Applied"'
		has "nodes/$node/desired.json" '[.cluster.layer, .node.layer] | all'
		has "nodes/$node/applied.json" '[.cluster.layer, .node.layer] | all'
		has "nodes/$node/ledger.json" ".bundle == $(jq .bundle "$from/nodes/$node/applied.json")"
		has "nodes/$node/ledger.json" '[.entries[] | select(.entry == "file C:\\k\\kubelet.conf")] | length == 1'
		grep -q 'msg=started\|msg=action\|msg=result' "$from/nodes/$node/logs/wicd/windows-instance-config-daemon.exe.INFO" || fail "the log of $node says nothing"
		[ -s "$from/cluster-scoped-resources/core/nodes/$node.yaml" ] || fail "Node $node is missing"
		! grep "nodes/$node/\|Node $node," "$from/missing.txt" || fail "something of $node is missing"
	done
	[ "$(sed -n 1p "$from/version")" = windows-machine-config-operator ] || fail 'the file version is another'
	grep -rlq 'name: win-1$' "$from/namespaces/default/core/events" || fail 'there are no Events about win-1'
	grep -q 'pulling https://' "$from/nodes/win-1/logs/wicd/windows-instance-config-daemon.exe.INFO" || fail 'the line with a planted secret is gone'
}

# clean searches the folder for secrets. The search must find them in the cluster.
clean() {
	local found
	secrets >"$out/secrets"
	oc get secrets,configmaps,nodes,events --all-namespaces -o json >"$out/cluster.json"
	[ "$(grep -oF "$mark" "$out/cluster.json" | wc -l)" -ge 3 ] && [ "$(grep -cFf "$out/secrets" "$out/cluster.json")" -ge 8 ] || fail 'the search finds no secrets in the cluster'
	if found=$(grep -rlFf "$out/secrets" "$from"); then fail "secrets are in $found"; fi
	rm "$out/secrets" "$out/cluster.json"
}

# states prints the states of the nodes by what wmco reads.
states() { bin/wmco status "$@" -o json | jq -c '.nodes[] | [.node, .state, .desired, .applied, .agent]'; }

readback() {
	bin/wmco status --from "$out/must-gather.local"
	diff <(states) <(states --from "$out/must-gather.local") || fail 'the folder says something else than the cluster'
	bin/wmco render --from "$out/must-gather.local" --all --out "$out/rendered" >"$out/render.log" 2>&1 || fail "the folder cannot be rendered: $out/render.log"
	for node in "${nodes[@]}"; do [ -s "$out/rendered/$node/C/k/kubelet.conf" ] || fail "the folder has no kubelet.conf of $node"; done
}

mkdir "$out"
oc create namespace $own
oc create clusterrolebinding $own --clusterrole=cluster-admin --serviceaccount=$own:default
plant
gather
from=$out/must-gather.local/registry-example-com-wmco
complete
clean
readback
uproot
oc delete clusterrolebinding $own
oc delete namespace $own

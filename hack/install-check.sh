#!/usr/bin/env bash
# The commands of the documents that install the operator and remove it, run as they are written there, in a cluster with five simulated
# hosts: docs/install.md "Install" and "Run the operator outside of the cluster", docs/takeover.md "Removing this operator". Nothing starts Pods
# there, so the operator is started from the unpacked image as the Deployment says, and its must-gather collects the nodes
# (hack/gather-check.sh). Then nodes still run, and nothing is left in the cluster but what the documents name.
#
#	hack/install-check.sh RELEASE ROOT     RELEASE has the files of release 0.1.0, ROOT what its image has (root; make image-check calls it)
set -euo pipefail

out=bin/install-check
client=bin/image-check/cluster
what="the installation by the documents' commands"
clusters=golden/clusters
mirrors=golden/transitions/mirror-added/idms.yaml
namespace=openshift-windows-machine-config-operator
operator_name=windows-machine-config-operator
. hack/simulated-cluster.bash
release=$1 root=$2

# run FILE HEADING NUMBER: run a block of commands in the folder of the release.
run() {
	local commands
	commands=$(hack/commands "$@")
	commands=${commands//DIGEST/${digest:-DIGEST}}
	printf '\n%s, "%s":\n%s\n\n' "$1" "$2" "$commands" # not with set -x, which prints the token
	(cd "$out/release" && bash -euo pipefail -c "$commands") || fail "the commands of $1, \"$2\", end with status $?"
}

# commands makes the folder of programs that the documents' commands find first.
commands() {
	local name
	mkdir "$out/path"
	for name in oc kubectl; do ln -s "$PWD/bin/tools/kubectl" "$out/path/$name"; done
	printf 'Host *\n  IdentityFile %s\n  UserKnownHostsFile %s\n  StrictHostKeyChecking accept-new\n' "$PWD/$out/made/identity" "$PWD/$out/known_hosts" >"$out/ssh_config"
	for name in ssh sftp; do
		printf '#!/bin/sh\nexec %s -q -F %s "$@"\n' "$(command -v $name)" "$PWD/$out/ssh_config" >"$out/path/$name"
		chmod +x "$out/path/$name"
	done
	export PATH=$PWD/$out/path:$PATH
}

# registry starts one by the name that docs/install.md has.
registry() {
	cp /etc/hosts "$out/hosts"
	echo '127.0.0.1 registry.example.com' >>"$out/hosts"
	mount --bind "$out/hosts" /etc/hosts
	printf 'version: 0.1\nstorage: {filesystem: {rootdirectory: %s}}\nhttp: {addr: "127.0.0.1:80"}\nlog: {level: error, accesslog: {disabled: false}}\n' "$PWD/$out/registry" >"$out/registry.yaml"
	mkdir -p "$HOME/.config/containers"
	printf '[[registry]]\nlocation = "registry.example.com"\ninsecure = true\n' >"$HOME/.config/containers/registries.conf" # no TLS
	docker-registry serve "$out/registry.yaml" >"$out/registry.log" 2>&1 &
	registry=$!
	until (exec 3<>/dev/tcp/127.0.0.1/80) 2>/dev/null; do
		kill -0 $registry || fail "the registry does not start: $out/registry.log"
		sleep 0.2
	done
}

# objects prints what is in the cluster, one object a line. What Kubernetes writes for running nodes is left out.
objects() {
	local kinds
	kinds=$(oc api-resources --verbs=list -o name | grep -v -x -e 'events.*' -e 'leases.coordination.k8s.io' -e 'certificatesigningrequests.certificates.k8s.io' -e componentstatuses | paste -sd,)
	oc get "$kinds" --all-namespaces --ignore-not-found --output 'go-template={{range .items}}{{.kind}} {{with .metadata.namespace}}{{.}}/{{end}}{{.metadata.name}}{{"\n"}}{{end}}' 2>"$out/objects-warnings" | sort
}

# mirror_operator copies the operator's image to a mirror, from which alone it may be pulled, and says that the Pod runs it, as a kubelet would.
mirror_operator() {
	local image=$1
	skopeo copy -q --all "docker://$image" docker://registry.example.com/mirrors/wmco:0.1.0
	[ "$(skopeo inspect --raw docker://registry.example.com/mirrors/wmco:0.1.0 | sha256sum | cut -d' ' -f1)" = "${image#*@sha256:}" ] || fail 'the copy has another digest'
	oc patch images.config.openshift.io cluster --type merge -p '{"spec": {"registrySources": {"insecureRegistries": ["registry.example.com"]}}}'
	oc apply -f - <<-END
		{apiVersion: config.openshift.io/v1, kind: ImageDigestMirrorSet, metadata: {name: operator},
		 spec: {imageDigestMirrors: [{source: registry.example.com/wmco, mirrors: [registry.example.com/mirrors/wmco], mirrorSourcePolicy: NeverContactSource}]}}
	END
	oc patch -n $namespace "$(<"$out/pod")" --subresource status --type merge -p "{\"status\": {\"containerStatuses\": [{\"name\": \"manager\", \"image\": \"$image\", \"imageID\": \"$image\", \"ready\": true, \"restartCount\": 0}]}}"
	: >"$out/registry.log"
}

# fetched: the hosts have fetched all executables from the mirror. The settings forbid to copy them.
fetched() {
	local blobs
	blobs=$(grep -c '"GET /v2/mirrors/wmco/blobs/' "$out/registry.log") || fail "no layer was pulled from the mirror: $out/registry.log"
	! grep '"GET /v2/wmco/' "$out/registry.log" || fail 'the source was asked, which is forbidden'
	! oc get events -n $namespace -o json | jq -e '.items[] | select(.reason == "ExecutablesNotFetched")' || fail 'a host could not fetch'
	say "The hosts have pulled $blobs layers from the mirror of the operator's image, and nothing over SSH."
}

deployment() { oc get deployment $operator_name -n $namespace -o json | jq -r ".spec.template.spec.containers[0] | $1"; }

pod() { oc get pods -n $namespace -l name=$operator_name -o name | grep pod/ >"$out/pod"; }

# start_operator starts the operator as a kubelet does: with the command and the probes of the Deployment, the Pod's name, and the token of
# its ServiceAccount.
start_operator() {
	local account=$root/var/run/secrets/kubernetes.io/serviceaccount server words
	server=$(oc config view --minify -o jsonpath='{.clusters[0].cluster.server}')
	mkdir -p "$account"
	oc config view --minify --flatten -o jsonpath='{.clusters[0].cluster.certificate-authority-data}' | base64 -d >"$account/ca.crt"
	oc create token $operator_name -n $namespace >"$account/token"
	chmod 0444 "$account"/*
	readarray -t words < <(deployment "(.command + .args)[]" | sed "s/\$(POD_NAMESPACE)/$namespace/")
	printf '\n$ %s &\n' "${words[*]}"
	env -i PATH=/usr/bin HOME=/tmp KUBERNETES_SERVICE_HOST="$(cut -d/ -f3 <<<"$server" | cut -d: -f1)" KUBERNETES_SERVICE_PORT="${server##*:}" WATCH_NAMESPACE= \
		POD_NAMESPACE=$namespace POD_NAME="$(cut -d/ -f2 "$out/pod")" OPERATOR_NAME=$operator_name \
		/usr/sbin/chroot --userspec=65532:65532 "$root" "${words[@]}" 2>"$out/operator.log" &
	operator=$!
	until_true 'the readiness probe of the Deployment' ready
}

ready() {
	local port path
	port=$(deployment '.readinessProbe.httpGet.port as $p | .ports[] | select(.name == $p) | .containerPort')
	path=$(deployment .readinessProbe.httpGet.path)
	exec 3<>"/dev/tcp/127.0.0.1/$port" || return
	printf 'GET %s HTTP/1.0\r\n\r\n' "$path" >&3
	grep -q '^HTTP/1.. 200 ' <&3
} 2>/dev/null

updated() { bin/wmco status >"$out/status" 2>&1 && [ "$(awk '$2 == "Updated"' "$out/status" | wc -l)" -eq 5 ]; }

mirrored() { [ "$(grep -ls mirror.example.com "$out"/made/win-[1-5]/machine/C/k/containerd/registries/quay.io/hosts.toml | wc -l)" -eq 5 ] && updated; }

gone() { ! oc get node "$1" >/dev/null 2>&1; }

# left_on NAME: the files on the host but what docs/joining.md and docs/node-program.md say. The next boot removes the program of the removal.
left_on() {
	(cd "$out/made/$1/machine/C" && find . -type f -not -path './var/log/wicd/*.exe.INFO' -not -path './Windows/wmco/*' -not -path './Windows/wmco-removal-*.exe')
}

is_clean() { [ -z "$(left_on "$1")" ]; }

story() {
	furnish
	local load=()
	for name in apiserver clusterversion image machineconfigpools network-config network-operator proxy secret-node-bootstrapper-token secret-pull-secret; do
		load+=(--load "$clusters/common/$name.yaml")
	done
	for name in infrastructure controllerconfig machineconfigs; do load+=(--load "$clusters/none/$name.yaml"); done
	up --bare "${load[@]}" --load hack/demo-cluster/machines.yaml --load hack/install-check/monitoring.yaml
	export HOME=$PWD/$out/home KUBECONFIG=$PWD/$out/made/kubeconfig
	commands
	registry
	cp -al "$release" "$out/release"
	cp "$out/made/identity" "$out/release/KEY"
	cp hack/install-check/settings.yaml "$out/release/SETTINGS"
	objects >"$out/before"

	run docs/install.md Install 1
	local image
	image=$(deployment .image)
	[ "${image#*@}" = "$(cat "$release"/*-image.digest.txt)" ] || fail "the Deployment has image $image"
	[ "$(skopeo inspect --raw "docker://$image" | sha256sum | cut -d' ' -f1)" = "${image#*@sha256:}" ] || fail "the registry does not have $image"
	operator=$cluster until_true 'a Pod of the Deployment, which the security of its namespace admits' pod
	mirror_operator "$image"
	start_operator
	run docs/install.md Install 2
	until_true 'five nodes as published' updated
	fetched
	run docs/install.md Install 3
	run docs/install.md 'Run the operator outside of the cluster' 2
	[ "$(oc --kubeconfig "$out/release/operator.kubeconfig" auth whoami -o jsonpath='{.status.userInfo.username}')" = "system:serviceaccount:$namespace:$operator_name" ] ||
		fail 'the kubeconfig of the operator is of another account'
	say 'A mirror set reaches all nodes.'
	show oc apply -f $mirrors
	until_true 'the mirror set on all nodes' mirrored
	say 'must-gather collects the nodes, without secrets.'
	show hack/gather-check.sh "$root" "$out/made" "$out/gather" || fail 'must-gather'

	run docs/takeover.md 'Removing this operator' 1
	until_true 'the removal of win-5' gone win-5
	run docs/takeover.md 'Removing this operator' 2
	until_true 'the removal of win-4' gone win-4
	for name in win-4 win-5; do until_true "a host without anything of the operator: $name" is_clean $name; done
	run docs/takeover.md 'Removing this operator' 3
	sleep 1
	kill $operator
	wait $operator || true
	run docs/takeover.md 'Removing this operator' 5

	say 'Three nodes run on: they are Ready, and a new Pod starts on one.'
	# The cluster has no scheduler.
	oc run after-the-removal --image=registry.example.com/any --overrides='{"spec": {"nodeName": "win-1", "tolerations": [{"operator": "Exists"}]}}'
	oc wait --for=condition=Ready node/win-1 node/win-2 node/win-3 pod/after-the-removal --timeout="${patience}s"
	oc delete pod after-the-removal

	digest=$(cd "$out/made/win-3/machine/C/Windows/wmco" && basename wmco-node-*.exe .exe)
	digest=${digest#wmco-node-}
	run docs/takeover.md 'Removing this operator' 6
	is_clean win-3 || fail "win-3 is not clean: $(left_on win-3)"
	objects >"$out/after"
	printf 'ImageDigestMirrorSet operator\nImageDigestMirrorSet quay\nNode win-1\nNode win-2\n' | sort - "$out/before" >"$out/expected"
	diff "$out/expected" "$out/after" || fail 'the cluster has other objects than before the installation (>), beside the nodes and the mirror set'
	echo 'The operator was installed and removed by the documents.'
}

case ${3:-} in
story)
	operator='' cluster='' registry=''
	trap 'kill $operator $registry 2>/dev/null || true; exec 8>&- || true; wait || true' EXIT
	trap 'exit 130' INT TERM
	story
	;;
*)
	[ "$(id -u)" -eq 0 ] || skip 'only root may start the operator as another user'
	[ -x bin/tools/kubectl ] || skip 'no kubectl: its modules are not served'
	for name in skopeo docker-registry sftp; do command -v $name >/dev/null || skip "no $name"; done
	prepare
	exec "${namespaces[@]}" "$0" "$release" "$root" story
	;;
esac

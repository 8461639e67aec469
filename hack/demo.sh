#!/usr/bin/env bash
# The main job on the example cluster: what would its Windows nodes be, and what does a set of mirrors make of it?
set -euo pipefail

clusters=golden/clusters
node=ip-10-0-140-21.eu-central-1.compute.internal
out=bin/demo

show() {
	printf '\n$ %s\n' "$*"
	"$@"
}

rm -rf "$out"
mkdir -p "$out"

echo 'The example cluster: one Windows node, with what the machine says of itself.'
show bin/wmco render --from $clusters/common --from $clusters/aws --facts golden/facts/aws.json --node $node

echo
echo 'Every Windows machine of it, as files to read, review and keep in git.'
show bin/wmco render --from $clusters/common --from $clusters/aws --facts golden/facts/aws.json --all --out "$out/aws" >"$out/aws.txt"
show find "$out/aws/$node" -type f | sed "s|^$out/||" | sort
show cat "$out/aws/$node/C/k/kubelet.conf"

echo
echo 'A must-gather works as it is; what it lacks is marked.'
show bin/wmco validate --from $clusters/mustgather

echo
echo 'Mirrors: what Windows nodes do with them, and what they cannot do.'
show bin/wmco render --from $clusters/common --from $clusters/none --from $clusters/traits/mirrors \
	--facts golden/facts/none.json --node win-a --out "$out/mirrors" | sed -n '/^Findings/,$p'
for file in "$out"/mirrors/C/k/containerd/registries/*/hosts.toml; do
	printf '\n# %s\n' "${file#"$out"/mirrors/}"
	cat "$file"
done

echo
echo 'Review: two changes of the example cluster, as a reader of a pull request sees them.'
before="--against $clusters/common --against $clusters/none"
show bin/wmco diff --from $clusters/common --from $clusters/none --from $clusters/traits/mirrors $before \
	--facts golden/facts/none.json -o markdown || [ $? -eq 1 ]
show bin/wmco diff --from $clusters/common --from $clusters/none --from golden/transitions/kubelet-override/settings.yaml $before \
	--facts golden/facts/none.json --node win-a || [ $? -eq 1 ]

#!/usr/bin/env bash
# Render the example cluster: its Windows nodes, and what a set of mirrors changes on them.
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

echo 'The example cluster: one Windows node, with the facts that its host reports.'
show bin/wmco render --from $clusters/common --from $clusters/aws --facts golden/facts/aws.json --node $node

echo
echo 'Every Windows host, as files to read, review and keep in git.'
show bin/wmco render --from $clusters/common --from $clusters/aws --facts golden/facts/aws.json --all --out "$out/aws" >"$out/aws.txt"
show find "$out/aws/$node" -type f | sed "s|^$out/||" | sort
show cat "$out/aws/$node/C/k/kubelet.conf"

echo
echo 'A must-gather can be read directly; missing values are marked.'
show bin/wmco validate --from $clusters/mustgather

echo
echo 'Mirrors: what Windows nodes support, and what they do not.'
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

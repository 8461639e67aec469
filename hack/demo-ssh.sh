#!/usr/bin/env bash
# Applies to three hosts over SSH in parallel: one fails and is rolled back, the others do not wait for it. Each host is a
# real OpenSSH server on a loopback address with a simulated Windows host behind it.
set -euo pipefail

out=bin/demo/ssh
mirrors=golden/transitions/mirror-added/idms.yaml
cluster=(--from golden/clusters/common --from golden/clusters/none --from hack/demo-ssh/machines.yaml --payload golden/payload)

say() { printf '\n%s\n' "$*"; }

show() {
	printf '\n$ %s\n' "$*"
	"$@"
}

# wmco STATUS COMMAND [FLAG...]: run the command for the cluster and the three hosts. It must return this status.
wmco() {
	local want=$1 status=0
	shift
	printf '\n$ bin/wmco %s \\\n' "$*"
	printf '    %s \\\n' "${cluster[*]}" "${hosts[*]}"
	printf '    %s\n' "${door[*]}"
	bin/wmco "$@" "${cluster[@]}" "${hosts[@]}" "${door[@]}" || status=$?
	printf '(exit status %d)\n' "$status"
	[ "$status" -eq "$want" ] || { echo "make: wmco $1 ended with status $status, not $want" >&2; exit 1; }
}

rm -rf "$out"
mkdir -p "$out"
go build -o "$out/machines" ./internal/test/sshtest/cmd/machines
hack/packages openssh-server || true # it may be installed in another way; if not, the servers fail with a message

# The servers end when their stdin closes, so not later than this script.
mkfifo "$out/hold" "$out/started"
"$out/machines" "$PWD/$out" 127.0.8.1:0 127.0.8.2:0 127.0.8.3:0 <"$out/hold" >"$out/started" &
servers=$!
export XDG_CONFIG_HOME=$PWD/$out/config # the state of wmco stays in the folder of the demo
exec 8>"$out/hold" 9<"$out/started"
hosts=()
roots=()
while read -r host identity root <&9; do
	hosts+=(--host "$host")
	roots+=("${root#"$PWD"/}")
	[ "${#roots[@]}" -lt 3 ] || break
done
if [ "${#roots[@]}" -lt 3 ]; then
	status=0
	wait $servers || status=$?
	[ $status -eq 3 ] || { echo 'make: the SSH servers do not start' >&2; exit 1; }
	echo 'The demo over SSH is skipped: the line above has the reason.'
	exit 0
fi
identity=${identity#"$PWD"/}
door=(--identity "$identity" --known-hosts "$out/known_hosts" --node-program bin/wmco-node)

say 'Three hosts with empty drives behind SSH servers. The account is yours; on a node it is Administrator.'
for i in 1 2 3; do
	sed "s/NUMBER/$i/" hack/demo-ssh/facts.json >"$out/win-$i.json"
	show bin/wmco-node --root "${roots[i - 1]}" machine create --facts "$out/win-$i.json"
done

say 'On the second host, the kubelet exits as soon as it starts.'
echo '{"services": {"kubelet": {"start": "exits"}}}' >"${roots[1]}/.machine/behaviour.json"
show cat "${roots[1]}/.machine/behaviour.json"

say 'Apply to all three. The second is rolled back, exit status 5; the others are done.'
wmco 5 apply

say 'The second is fixed. The same command changes nothing on two hosts and completes the other one.'
show rm "${roots[1]}/.machine/behaviour.json"
wmco 0 apply

say 'Verify reads every file and queries every service.'
wmco 0 verify

say 'New mirrors: diff prints the changes on the hosts, their impact and the objects that caused them.'
cluster+=(--from "$mirrors")
wmco 1 diff

say 'One file changes on each host, and no service restarts.'
wmco 0 apply --max-impact none

exec 8>&-
wait $servers

#!/usr/bin/env bash
# Three machines over SSH, at once: one fails in the middle and is put back, the others do not wait for it. Each is a real
# OpenSSH server on a loopback address with a simulated Windows machine behind it.
set -euo pipefail

out=bin/demo/ssh
mirrors=golden/transitions/mirror-added/idms.yaml
cluster=(--from golden/clusters/common --from golden/clusters/none --from hack/demo-ssh/windows-instances.yaml --payload golden/payload)

say() { printf '\n%s\n' "$*"; }

show() {
	printf '\n$ %s\n' "$*"
	"$@"
}

# wmco STATUS COMMAND [FLAG...]: run it for the cluster and the three machines; it must end with this status.
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
go build -o "$out/machines" ./internal/sshtest/cmd/machines
hack/packages openssh-server || true # it may be there by other means; where it is not, the servers say so

# The servers live as long as somebody holds their stdin, so no longer than this script.
mkfifo "$out/hold" "$out/started"
"$out/machines" "$PWD/$out" 127.0.8.1:0 127.0.8.2:0 127.0.8.3:0 <"$out/hold" >"$out/started" &
servers=$!
export XDG_CONFIG_HOME=$PWD/$out/config # what wmco keeps for the next run stays in the demo
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
	echo 'Machines over SSH are not shown, for lack of what the line above names.'
	exit 0
fi
identity=${identity#"$PWD"/}
door=(--identity "$identity" --known-hosts "$out/known_hosts" --node-program bin/wmco-node)

say 'Three machines with empty drives behind SSH servers. The account is ours; on a node it is Administrator.'
for i in 1 2 3; do
	sed "s/NUMBER/$i/" hack/demo-ssh/facts.json >"$out/win-$i.json"
	show bin/wmco-node --root "${roots[i - 1]}" machine create --facts "$out/win-$i.json"
done

say 'On the second one the kubelet ends as soon as it is started.'
echo '{"services": {"kubelet": {"start": "exits"}}}' >"${roots[1]}/.machine/behaviour.json"
show cat "${roots[1]}/.machine/behaviour.json"

say 'All three at once. The second is put back, exit status 5; the others are done.'
wmco 5 apply

say 'The second is mended. The same command again does nothing on two machines, and the third one is done too.'
show rm "${roots[1]}/.machine/behaviour.json"
wmco 0 apply

say 'Every file is read, every service is asked.'
wmco 0 verify

say 'Mirrors come: what would change on the machines, what would it cost, and who caused it?'
cluster+=(--from $mirrors)
wmco 1 diff

say 'One file on each, no service restarts.'
wmco 0 apply --max-impact none

exec 8>&-
wait $servers

# A control plane and simulated Windows hosts behind OpenSSH servers, for scripts that source this file. They set out (their folder), client
# (where to build internal/test/simnode/cmd/cluster) and what (what is skipped if something is missing), and call themselves with "story" again:
#
#	prepare: programs, folder --> "${namespaces[@]}" SCRIPT story --> furnish: addresses, account --> up: cluster, five hosts
#
# The hosts have addresses of 192.0.2.0/24 (RFC 5737) and the account Administrator, in namespaces of their own.

# shellcheck shell=bash disable=SC2154 # out, client and operator are of the script

PATH=$PATH:/usr/sbin:/sbin
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
	hack/skip "$what" "$1"
	exit 0
}

# What the namespaces need: a network with addresses, and an account that is known here only.
namespaces=(unshare --net --mount)
[ "$(id -u)" -eq 0 ] || namespaces=(unshare --user --map-current-user --keep-caps --net --mount)

prepare() {
	local name missing=()
	for name in etcd kube-apiserver kube-controller-manager; do
		[ -x "${WMCO_TESTENV:-bin/testenv}/$name" ] || missing+=("$name")
	done
	[ ${#missing[@]} -eq 0 ] || skip "no ${missing[*]}: make testenv"
	hack/packages openssh-server iproute2 util-linux || true # they may be installed in another way
	for name in ip unshare; do command -v "$name" >/dev/null || skip "no $name"; done
	"${namespaces[@]}" true 2>/dev/null ||
		skip "this computer refuses ${namespaces[*]}: run as root, in a container with CAP_SYS_ADMIN and CAP_NET_ADMIN"
	rm -rf "$out"
	mkdir -p "$out"
	hack/step "building the program that simulates the hosts" go build -o "$client" ./internal/test/simnode/cmd/cluster
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

# up FLAG...: start the cluster and five hosts.
up() {
	mkfifo "$out/hold" "$out/started"
	"$client" up "$out/made" "$@" \
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

# until_true WHAT COMMAND...: run the command every second until it succeeds. The operator must be running.
until_true() {
	local what=$1 end=$((SECONDS + patience))
	shift
	until "$@"; do
		[ $SECONDS -lt $end ] || fail "$what: not within ${patience}s"
		kill -0 "$operator" 2>/dev/null || fail "the operator has ended"
		sleep 1
	done
}

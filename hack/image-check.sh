#!/usr/bin/env bash
# The operator's image: two builds have one digest, skopeo reads and copies it, what skopeo copied starts, and the commands of the
# documents install it, so that hosts join with the payload of the image, and remove it. The payload is one of stand-ins, or the one that
# WMCO_IMAGE_PAYLOAD names, with a node agent that runs on simulated hosts.
#
#	hack/image-check.sh          (make image-check builds what it needs)
set -euo pipefail

out=bin/image-check
client=$out/cluster
made=$out/payload
root=$out/root
release=$out/release
releaser=bin/tools/release
version=$(bin/wmco version -o json | jq -r .version)

fail() {
	echo "make: $*" >&2
	exit 1
}

# made_of VERSION: the flags of the image.
made_of() {
	printf '%s\n' --version "$1" --revision "$(git rev-parse HEAD)" --created "$(git log -1 --format=%cI)" --payload "$made" --bills "$out/no-bills"
	for name in linux/amd64 linux/arm64; do
		printf '%s\n' --operator "$name=bin/release/${name/\//-}/wmco" --shell "$name=bin/release/${name/\//-}/shell"
	done
}

# image DIR ARGUMENT...: make the image and print its digest.
image() {
	local to=$1 flags
	shift
	readarray -t flags < <(made_of "$version")
	"$releaser" image "${flags[@]}" --out "$to" "$@"
}

# unpack_copied DIR ROOT: unpack what skopeo copied.
unpack_copied() {
	local layer
	mkdir -p "$2"
	for layer in $(jq -r '.layers[].digest' "$1/manifest.json"); do tar -xzf "$1/${layer#sha256:}" -C "$2" --no-same-owner; done
}

rm -rf "$out"
mkdir -p "$out"
go build -o "$client" ./internal/test/simnode/cmd/cluster
"$client" payload "${WMCO_IMAGE_PAYLOAD:-golden/payload}" "$version" "$made" wmco-node=bin/wmco-node

! image "$out/refused" 2>"$out/refusal" || fail 'an image without bills of materials is not refused'
grep -q 'kubelet-1.36 has no bill of materials' "$out/refusal" || fail "the refusal does not say what is missing: $(<"$out/refusal")"
first=$(image "$out/image" --allow-missing)
second=$(image "$out/again" --allow-missing)
[ "$first" = "$second" ] || fail "two images of the same files: $first and $second"
echo "make: the image is $first, twice" >&2

arch=$(go env GOARCH)
if hack/packages skopeo openssh-client && command -v skopeo >/dev/null; then
	named=oci:$PWD/$out/image:$version
	[ "$(skopeo inspect --raw "$named" | sha256sum | cut -d' ' -f1)" = "${first#sha256:}" ] || fail 'skopeo reads another digest'
	[ "$(skopeo inspect --override-arch "$arch" "$named" | jq -r '.Labels["org.opencontainers.image.version"]')" = "$version" ] || fail 'the label of the version is another'
	skopeo copy -q --all "$named" "dir:$out/all"
	sha256sum "$out/all/manifest.json" | grep "^${first#sha256:} " >/dev/null || fail 'skopeo copies it under another digest'
	skopeo copy -q --override-arch "$arch" "$named" "dir:$out/copied"
	unpack_copied "$out/copied" "$root"
	"$releaser" unpack --image "$out/image" --platform "linux/$arch" --out "$out/unpacked"
	diff -r "$root" "$out/unpacked" || fail 'skopeo copies other files'
else
	hack/skip 'the test of the image with skopeo' 'no skopeo'
	"$releaser" unpack --image "$out/image" --platform "linux/$arch" --out "$root"
fi
chmod 1777 "$root/tmp"
"$root/usr/bin/wmco" version -o json | jq -e --arg v "$version" '.version == $v' >/dev/null || fail 'the operator of the image is of another version'

# Nothing is piped into grep -q, which ends before the program in front of it has written all: with pipefail, that one's SIGPIPE is a failure.
# The pause image of a release is the default of the program that is linked for it.
pause=registry.example.com/pause@$first
make -s "program/linux-$arch" "VERSION=$version" "RELEASE_OUT=$out/linked" "PAUSE_IMAGE=$pause" >"$out/linking" 2>&1 || fail "linking with a pause image: $(<"$out/linking")"
"$out/linked/linux-$arch/wmco" explain pauseImage | grep -F "$pause" >/dev/null || fail 'PAUSE_IMAGE is not the default of pauseImage'

# What oc adm must-gather does in the image: a script of bash, and tar for the copy. Only root may change its root folder.
if [ "$(id -u)" -eq 0 ]; then
	echo gathered >"$root/must-gather/version"
	chroot --userspec=65532:65532 "$root" /bin/bash -c 'while true; do sleep 5; done & /usr/bin/gather --help >/tmp/help; sync' || fail 'the script of must-gather fails'
	chroot --userspec=65532:65532 "$root" tar -C /must-gather/ -c . | tar -t | grep -x version >/dev/null || fail 'tar does not copy what was gathered'
	rm "$root/must-gather/version" "$root/tmp/help"
fi

# The files of a release that the installation needs, by the names that the documents have.
readarray -t flags < <(made_of 0.1.0)
"$releaser" files "${flags[@]}" --image "$out/image" --program linux/amd64=bin/release/linux-amd64/wmco --out "$release"
go run ./deploy/kustomize/cmd/manifests deploy "registry.example.com/wmco@$first" >"$release/windows-machine-config-operator-0.1.0-install.yaml"
"$releaser" sums "$release" >"$out/files"
if ! hack/install-check.sh "$release" "$root" >"$out/log" 2>&1; then
	tail -n 60 "$out/log" >&2
	fail "the commands of the documents do not install and remove the operator: $out/log"
fi
grep '^skipped\|skipped:' "$out/log" >&2 || tail -n 1 "$out/log" >&2

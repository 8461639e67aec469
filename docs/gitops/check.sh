#!/bin/sh
# Checks a golden folder of this repository and writes the comment for a pull request.
#
#	check.sh DIR BASE COMMENT     e.g. check.sh windows origin/main comment.md
#
# Status 0: want/ is up to date. 1: it is not. 2: the inputs are refused, the reason is on stderr; or the pull request adds a
# warning, which the comment begins with. FAIL_ON=error in the environment lets warnings through.
set -eu

dir=$1
base=$2
comment=$3

# What the pull request changes: its inputs against what the target branch wants.
tree=$(mktemp -d)
trap 'git worktree remove --force "$tree" >/dev/null 2>&1 || rm -rf "$tree"' EXIT
git worktree add --quiet --detach "$tree" HEAD
rm -rf "$tree/$dir/want"
if git cat-file -e "$base:$dir/want" 2>/dev/null; then
	git -C "$tree" checkout --quiet "$base" -- "$dir/want"
fi
status=0
wmco golden check "$tree/$dir" -o markdown --fail-on "${FAIL_ON:-warning}" >"$comment" || status=$?
if [ "$status" -gt 1 ]; then
	exit "$status"
fi

# Whether its author ran `wmco golden update`.
if ! wmco golden check "$dir" >/dev/null; then
	printf '\n**`want/` is out of date:** run `wmco golden update %s` and commit the result.\n' "$dir" >>"$comment"
	exit 1
fi

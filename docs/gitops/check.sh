#!/bin/sh
# Checks a golden folder of this repository and writes the comment for a pull request.
#
#	check.sh DIR BASE COMMENT [WHOLE]     e.g. check.sh windows refs/remotes/origin/main comment.md whole.md
#
# Run the one of the target branch, at the top of a checkout of the pull request: whose scripts run decides what the pipeline may do. DIR is
# relative to the top. Nothing of the checkout is run, and no link of it is followed.
#
# Status 0: want/ is up to date. 1: it is not. 2: the inputs are refused, or the pull request adds a warning; the comment begins with
# it. FAIL_ON=error in the environment lets warnings through. WHOLE gets the whole answer of wmco golden check -o markdown, however long it is.
set -eu
export GIT_LFS_SKIP_SMUDGE=1 # a pull request names the server that git-lfs would fetch large files from

dir=${1#./}
dir=${dir%/}
base=$(git rev-parse --verify --quiet "$2^{commit}") || { echo "check.sh: $2 is no commit here: fetch it" >&2; exit 2; } # FETCH_HEAD is one of each worktree
comment=$3
whole=${4:-}

rm -f "$comment" ${whole:+"$whole"} # the checkout may have a link of that name

# By this line comment.sh finds the comment of the last run.
printf '<!-- wmco golden check %s -->\n' "$dir" >"$comment"

# A folder that is a link, or below one, would have files elsewhere read and removed.
inside() {
	[ "$dir" = . ] || [ "$(cd "$1/$dir" 2>/dev/null && pwd -P)" = "$(cd "$1" && pwd -P)/$dir" ]
}
if ! inside .; then
	printf '### Windows nodes\n\n**There is no folder `%s`, or it is a link.**\n' "$dir" | tee -a "$comment" >&2
	exit 2
fi

# Every problem of the inputs. All are in the log; errors are the comment.
report=$(mktemp)
tree=$(mktemp -d)
trap 'rm -f "$report"; git worktree remove --force "$tree" >/dev/null 2>&1 || rm -rf "$tree"' EXIT
status=0
wmco validate --golden "$dir" --strict >"$report" 2>&1 || status=$?
cat "$report" >&2
if [ "$status" -ne 0 ]; then
	printf '### Windows nodes\n\n**Refused:** the inputs have errors, and nodes would keep what they have. To go on, fix them: an error cannot be accepted.\n\n' >>"$comment"
	head -c 50000 "$report" | sed 's/^/    /' >>"$comment"
	exit "$status"
fi

# It decides what is rendered, so a reviewer has to know that it is another one.
if ! git diff --quiet "$base" HEAD -- "$dir/golden.yaml"; then
	printf '**`%s/golden.yaml` is another one than on the target branch:** other inputs are compared.\n\n' "$dir" >>"$comment"
fi

# What the pull request changes: its inputs against what the target branch wants.
git worktree add --quiet --detach "$tree" HEAD
inside "$tree" || { echo "check.sh: $dir of the commit is no folder" >&2; exit 2; }
rm -rf "${tree:?}/$dir/want"
if git cat-file -e "$base:$dir/want" 2>/dev/null; then
	git -C "$tree" checkout --quiet "$base" -- "$dir/want"
fi
wmco golden check "$tree/$dir" -o markdown --fail-on "${FAIL_ON:-warning}" >"$report" || status=$?
[ -z "$whole" ] || cp "$report" "$whole"
# Comments are limited to 65536 characters: what changes in each file is left out where there is more.
if [ "$(wc -c <"$report")" -gt 60000 ]; then
	sed '/^#### /,$d' "$report" | head -c 60000 >>"$comment"
	printf '\nThe differences are too many for a comment: see whole.md of this job.\n' >>"$comment"
else
	cat "$report" >>"$comment"
fi
if [ "$status" -gt 1 ]; then
	exit "$status"
fi

# Whether its author ran `wmco golden update`.
if ! wmco golden check "$dir" >/dev/null; then
	printf '\n**`want/` is out of date:** run `wmco golden update %s` and commit the result.\n' "$dir" >>"$comment"
	exit 1
fi

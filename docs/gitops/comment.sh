#!/bin/sh
# Puts a comment on a pull request, in the place of the one that the last run has put there. Needs curl and jq.
#
#	comment.sh FILE URL
#
# URL lists the comments, and takes new ones:
#	GitHub	API/repos/OWNER/NAME/issues/NUMBER/comments
#	GitLab	API/projects/ID/merge_requests/NUMBER/notes
# AUTH in the environment is the header that logs in, such as "Authorization: Bearer TOKEN". The first line of FILE is how the comment is
# recognized. AUTHOR is the account of the token: a comment of another one is not changed, although it may begin in the same way. Run the script of
# the target branch: it has the token.
set -eu

file=$1
url=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
umask 077
printf '%s\n' "$AUTH" >"$work/header" # a token in an argument is seen by everybody on the computer

request() {
	method=$1
	shift
	curl --fail --silent --show-error --request "$method" --header "@$work/header" --header 'Content-Type: application/json' "$@"
}

jq --null-input --rawfile body "$file" '{body: $body}' >"$work/comment"
mark=$(head -n 1 "$file")
place=
page=1
while [ -z "$place" ] && [ "$page" -le 50 ]; do
	request GET "$url?per_page=100&page=$page" >"$work/list"
	if [ "$(jq length "$work/list")" -eq 0 ]; then
		break
	fi
	# A comment of GitHub has the URL at which it is changed; a note of GitLab is below the list.
	place=$(jq --raw-output --arg mark "$mark" --arg list "$url" --arg author "${AUTHOR:-}" \
		'[.[] | select(.body | startswith($mark)) | select($author == "" or (.user.login // .author.username) == $author) | if .url then "PATCH " + .url else "PUT \($list)/\(.id)" end][0] // empty' "$work/list")
	page=$((page + 1))
done
if [ -n "$place" ] && request "${place%% *}" "${place#* }" --data-binary "@$work/comment" >/dev/null; then
	exit 0
fi
request POST "$url" --data-binary "@$work/comment" >/dev/null

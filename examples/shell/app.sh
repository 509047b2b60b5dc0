#!/bin/sh
# An app in shell, with curl, jq and busybox: launch, user, operation, approval, upload in chunks.
#
#     PLATFORM_URL=http://127.0.0.1:4010 PLATFORM_API_KEY=... PORT=5000 sh app.sh
#
# Its launch address is http://127.0.0.1:5000/cgi-bin/launch. The token never stands in a command line, where others could
# read it: curl reads its address from the standard input.
set -u
base=$PLATFORM_URL/public/external-app
poll_seconds=2.5 # spec 4.8, rule 2: every 2 to 5 s

# One try. Options of curl come on the standard input. Prints the body, then status and Retry-After on a line.
once() { # METHOD PATH
  token=$(cat "$dir/token")
  {
    printf 'request = "%s"\nurl = "%s%s%s%s"\n' "$1" "$base" "${2%%"{token}"*}" "$token" "${2#*"{token}"}"
    printf 'header = "X-API-KEY: %s"\n' "$PLATFORM_API_KEY"
    cat
  } | curl --silent --max-time 30 --write-out '\n%{http_code} %header{retry-after}\n' --config -
}

# Repeats what the world did: no answer, 5xx, 429. Renews the token once, and then says no. Prints the body.
call() { # METHOD PATH TRIES
  cat >"$dir/options"
  renewed=
  try=0
  while [ "$try" -lt "$3" ]; do
    pause=$((1 << try))
    asked=
    try=$((try + 1))
    if once "$1" "$2" <"$dir/options" >"$dir/answer"; then
      read -r status asked <<END
$(tail -n 1 "$dir/answer")
END
      if [ "$status" -lt 300 ]; then
        sed '$d' "$dir/answer"
        return 0
      elif [ "$status" = 403 ] && [ -z "$renewed" ]; then
        renewed=yes
        try=$((try - 1))
        renew || return 1
        continue
      elif [ "$status" -lt 500 ] && [ "$status" != 429 ]; then
        echo "$1 $2: $status" >&2
        return 1
      fi
      [ "${asked:-0}" -gt "$pause" ] 2>/dev/null && pause=$asked
    fi
    # A poll, too, waits as long as it was asked to.
    if [ "$try" -lt "$3" ] || [ "${asked:-0}" -gt 0 ] 2>/dev/null; then sleep "$pause"; fi
  done
  return 2 # no answer
}

renew() {
  once POST '/token/{token}/renew' </dev/null >"$dir/renewal" || return 0 # the next try renews again
  [ "$(tail -n 1 "$dir/renewal" | cut -c 1)" = 2 ] || return 1
  next=$(sed '$d' "$dir/renewal" | jq -r '.token // empty')
  [ -z "$next" ] || printf %s "$next" >"$dir/token"
}

send_json() { # PATH JSON [HEADER]
  {
    printf 'header = "content-type: application/json"\n'
    [ $# -lt 3 ] || printf 'header = "%s"\n' "$3"
    printf 'data = %s\n' "$(printf %s "$2" | jq -R .)"
  } | call POST "$1" 5
}

# One call each interval, and none after the decision. A call that failed is made up for by the next.
wait_for_decision() { # OPERATION
  while sleep "$poll_seconds"; do
    answer=$(call GET "/operation/{token}?operationId=$1" 1 </dev/null)
    case $? in
      0) status=$(printf %s "$answer" | jq -r .status) ;;
      2) continue ;;
      *) return 1 ;;
    esac
    [ "$status" = REQUESTED ] || break
  done
  [ "$status" = APPROVED ]
}

upload() { # OPERATION FILE
  begun=$(send_json '/file/{token}/upload/initiate' "$(jq -nc --arg id "$1" '{operationId: $id, fileName: "report.csv"}')") || return 1
  upload_id=$(printf %s "$begun" | jq -r .uploadId)
  key=$(printf %s "$begun" | jq -r .key)
  split -b 1000 -a 4 -d "$2" "$dir/part-"
  number=0
  for part in "$dir"/part-*; do
    number=$((number + 1))
    # The same bytes of the same part again change nothing: a chunk may be repeated.
    {
      printf 'form-string = "uploadId=%s"\nform-string = "key=%s"\n' "$upload_id" "$key"
      printf 'form-string = "partNumber=%s"\nform = "file=@%s;filename=part"\n' "$number" "$part"
    } | call POST '/file/{token}/upload/chunk' 5 >"$dir/chunk" || return 1
  done
  size=$(wc -c <"$2")
  send_json '/file/{token}/upload/complete' "$(jq -nc --arg id "$upload_id" --arg key "$key" --argjson size "$size" \
    '{uploadId: $id, key: $key, fileSize: $size, sourceType: "UNKNOWN"}')" >"$dir/completed"
}

work() {
  call GET '/user/{token}/detail' 5 </dev/null >"$dir/user" || return
  # The same key, launch and body give the same operation again: a lost answer makes no second one.
  operation=$(send_json '/operation/{token}' '{"name":"A report","description":"Writes a report.","parameters":{"lines":100}}' \
    "Idempotency-Key: $(cat /proc/sys/kernel/random/uuid)") || return
  id=$(printf %s "$operation" | jq -r .operationId)
  wait_for_decision "$id" || return
  seq 0 99 | awk '{ print $1 "," $1 * $1 }' >"$dir/report.csv" # the work: only now
  upload "$id" "$dir/report.csv"
}

# A launch: httpd starts this file again as a CGI program.
if [ -n "${GATEWAY_INTERFACE:-}" ]; then
  umask 077
  dir=$(mktemp -d)
  case "&${QUERY_STRING:-}" in
    *'&token='*)
      token="&$QUERY_STRING"
      token=${token#*&token=}
      printf %s "${token%%&*}" >"$dir/token" # as it came: it goes into paths, percent-encoded
      (
        work
        rm -rf "$dir"
      ) </dev/null >/dev/null 2>&1 &
      ;;
  esac
  printf 'content-type: text/html\r\nreferrer-policy: no-referrer\r\n\r\n<title>Report</title><p>Approve the report in the platform.'
  exit
fi

site=$(mktemp -d)
trap 'rm -rf "$site"' EXIT
trap 'exit 0' INT TERM
mkdir "$site/cgi-bin"
cp "$0" "$site/cgi-bin/launch"
chmod +x "$site/cgi-bin/launch"
echo "app ready http://127.0.0.1:${PORT:-5000}/cgi-bin/launch"
busybox httpd -f -p "127.0.0.1:${PORT:-5000}" -h "$site" &
wait

"""An app in plain Python, standard library only: launch, user, operation, approval, upload in chunks.

    PLATFORM_URL=http://127.0.0.1:4010 PLATFORM_API_KEY=... PORT=5000 python3 app.py
"""
import json
import os
import threading
import time
import urllib.error
import urllib.parse
import urllib.request
import uuid
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

BASE = os.environ["PLATFORM_URL"] + "/public/external-app"
KEY = os.environ["PLATFORM_API_KEY"]
POLL_SECONDS = 2.5  # spec 4.8, rule 2: every 2 to 5 s
TRIES = 5


class Refused(Exception):
    """The platform said no, and asking again would not help."""


class Session:
    """One launch. Its token is renewed when it ends; a renewal may give another one."""

    def __init__(self, token):
        self.token = token

    def call(self, method, path, body=None, headers=None, tries=TRIES):
        """Repeats what the world did: no answer, 5xx, 429. Renews the token once, and then says no."""
        renewed = False
        for attempt in range(tries):
            try:
                return self.once(method, path, body, headers or {})
            except urllib.error.HTTPError as error:
                wait = float(error.headers.get("Retry-After", 0))
                if error.code == 403 and not renewed:
                    renewed = True
                    self.renew()
                elif error.code < 500 and error.code != 429:
                    raise Refused(f"{method} {path}: {error.code}") from None
                else:
                    time.sleep(max(wait, 0.2 * 2**attempt))
            except (OSError, ValueError):  # cut, refused, or half an answer
                time.sleep(0.2 * 2**attempt)
        raise Refused(f"{method} {path}: no answer in {tries} tries")

    def once(self, method, path, body, headers):
        data = body if isinstance(body, bytes) or body is None else json.dumps(body).encode()
        if data is not None and not isinstance(body, bytes):
            headers = {"content-type": "application/json", **headers}
        address = BASE + path.replace("{token}", urllib.parse.quote(self.token, safe=""))
        request = urllib.request.Request(address, data, {"X-API-KEY": KEY, **headers}, method=method)
        with urllib.request.urlopen(request, timeout=30) as response:
            return json.load(response)

    def renew(self):
        try:
            self.token = self.once("POST", "/token/{token}/renew", None, {}).get("token", self.token)
        except urllib.error.HTTPError as error:
            raise Refused(f"the session is over: {error.code}") from None


def wait_for_decision(session, operation_id):
    """One call each interval, and none after the decision. A call that failed is made up for by the next."""
    while True:
        time.sleep(POLL_SECONDS)
        try:
            answer = session.call("GET", "/operation/{token}?operationId=" + operation_id, tries=1)
        except Refused as error:
            if "no answer" in str(error):
                continue
            raise
        if answer["status"] != "REQUESTED":
            return answer["status"]


def upload(session, operation_id, name, content, part_bytes=1000):
    begun = session.call("POST", "/file/{token}/upload/initiate", {"operationId": operation_id, "fileName": name})
    for number, start in enumerate(range(0, len(content), part_bytes), 1):
        # The same bytes of the same part again change nothing: a chunk may be repeated.
        form, content_type = multipart({**begun, "partNumber": str(number)}, content[start : start + part_bytes])
        session.call("POST", "/file/{token}/upload/chunk", form, {"content-type": content_type})
    whole = {"uploadId": begun["uploadId"], "key": begun["key"], "fileSize": len(content), "sourceType": "UNKNOWN"}
    return session.call("POST", "/file/{token}/upload/complete", whole)


def multipart(fields, content):
    boundary = uuid.uuid4().hex
    head = "".join(
        f'--{boundary}\r\ncontent-disposition: form-data; name="{name}"\r\n\r\n{value}\r\n' for name, value in fields.items()
    )
    head += f'--{boundary}\r\ncontent-disposition: form-data; name="file"; filename="part"\r\n\r\n'
    return head.encode() + content + f"\r\n--{boundary}--\r\n".encode(), f"multipart/form-data; boundary={boundary}"


def work(token):
    session = Session(token)
    try:
        user = session.call("GET", "/user/{token}/detail")
        # The same key, launch and body give the same operation again: a lost answer makes no second one.
        operation = session.call(
            "POST",
            "/operation/{token}",
            {"name": "A report", "description": f"Writes a report for {user.get('name')}.", "parameters": {"lines": 100}},
            {"Idempotency-Key": str(uuid.uuid4())},
        )
        if wait_for_decision(session, operation["operationId"]) != "APPROVED":
            return
        report = "".join(f"{line},{line * line}\n" for line in range(100)).encode()  # the work: only now
        upload(session, operation["operationId"], "report.csv", report)
    except Refused as error:
        print(error, flush=True)


class Launch(BaseHTTPRequestHandler):
    def do_GET(self):
        token = urllib.parse.parse_qs(urllib.parse.urlsplit(self.path).query).get("token", [None])[0]
        body = b"<title>Report</title><p>Approve the report in the platform."
        self.send_response(200)
        self.send_header("content-type", "text/html")
        self.send_header("content-length", str(len(body)))
        self.send_header("referrer-policy", "no-referrer")
        self.end_headers()
        self.wfile.write(body)
        if token:
            threading.Thread(target=work, args=(token,), daemon=True).start()

    def log_message(self, *_):  # its line would hold the token
        pass


server = ThreadingHTTPServer(("127.0.0.1", int(os.environ.get("PORT", "5000"))), Launch)
print(f"app ready http://127.0.0.1:{server.server_port}", flush=True)
try:
    server.serve_forever()
except KeyboardInterrupt:  # Ctrl-C
    pass

"""A small app in plain Python that begins at launch, with the fault that its argument names."""
import json
import os
import sys
import threading
import time
import urllib.error
import urllib.parse
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

BASE = os.environ["PLATFORM_URL"] + "/public/external-app"
KEY = os.environ["PLATFORM_API_KEY"]
FAULT = sys.argv[1]


def call(method, path, body=None, content_type="application/json"):
    data = body if isinstance(body, bytes) or body is None else json.dumps(body).encode()
    headers = {"X-API-KEY": KEY, **({"content-type": content_type} if data is not None else {})}
    request = urllib.request.Request(BASE + path, data=data, method=method, headers=headers)
    try:
        with urllib.request.urlopen(request, timeout=30) as response:
            return response.status, json.load(response)
    except urllib.error.HTTPError as error:
        return error.code, {}


def chunk(upload, number, content):
    boundary = "part-of-the-output"
    fields = {"uploadId": upload["uploadId"], "key": upload["key"], "partNumber": str(number)}
    lines = [f'--{boundary}\r\ncontent-disposition: form-data; name="{name}"\r\n\r\n{value}\r\n' for name, value in fields.items()]
    lines.append(f'--{boundary}\r\ncontent-disposition: form-data; name="file"; filename="part"\r\n\r\n')
    return "".join(lines).encode() + content + f"\r\n--{boundary}--\r\n".encode(), f"multipart/form-data; boundary={boundary}"


def work(token):
    call("GET", f"/user/{token}/detail")
    _, operation = call("POST", f"/operation/{token}", {"name": "in Python"})
    operation_id = operation["operationId"]
    status = "REQUESTED"
    while status == "REQUESTED":
        time.sleep(2.1)
        code, answer = call("GET", f"/operation/{token}?operationId={operation_id}")
        if code == 403:
            return
        status = answer.get("status", "REQUESTED")
    if status != "APPROVED" and not (status == "REJECTED" and FAULT == "uploads-after-rejection"):
        return
    if FAULT == "never-initiates":
        upload = {"uploadId": "upload-1", "key": "a.bin"}
    else:
        code, upload = call("POST", f"/file/{token}/upload/initiate", {"operationId": operation_id, "fileName": "a.bin"})
        if code != 200:
            return
    for number in (1, 2, 3):
        code = None
        while code != 200:
            code, _ = call("POST", f"/file/{token}/upload/chunk", *chunk(upload, number, bytes([number]) * 1000))
            if FAULT in ("never-initiates", "ignores-a-refused-chunk"):
                break
    call("POST", f"/file/{token}/upload/complete", {**upload, "fileSize": 3000, "sourceType": "UNKNOWN"})


class Launch(BaseHTTPRequestHandler):
    def do_GET(self):
        query = urllib.parse.parse_qs(urllib.parse.urlsplit(self.path).query)
        self.send_response(200)
        self.send_header("content-length", "7")
        self.end_headers()
        self.wfile.write(b"started")
        for token in query.get("token", []):
            threading.Thread(target=work, args=(token,), daemon=True).start()

    def log_message(self, *_):
        pass


server = ThreadingHTTPServer(("127.0.0.1", 0), Launch)
print(f"app ready http://127.0.0.1:{server.server_port}", flush=True)
server.serve_forever()
sys.exit(0)

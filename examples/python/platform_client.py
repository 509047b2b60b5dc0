"""A client of the platform in one file, with the standard library alone. Copy it into your app.

    platform = Platform("http://127.0.0.1:4010", api_key)
    launch = platform.launch(token)
    user = launch.user()
    operation_id = launch.create_operation("A report", key=str(uuid.uuid4()))
    if launch.wait_for_decision(operation_id) == "APPROVED":
        file = launch.upload(operation_id, "report.csv", "report.csv")

Retries, tokens and uploads follow the rules of the kit's own client. It uses no proxy.

- A failure that may pass (no answer, 408, 425, 429, 5xx, an answer that is cut or no JSON) is tried again up to five
  times, with growing pauses or after `Retry-After`. A refusal is not.
- A token is renewed before it ends, and once if the platform says that it has ended. One call renews it for all threads.
- A chunk that was lost comes again with the same bytes. If the platform has lost the upload, a new one is begun.
- No redirect is followed, and no error holds a token or a key.
"""
from __future__ import annotations

import datetime
import email.utils
import http.client
import json
import math
import os
import random
import ssl
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from typing import Any, BinaryIO, Literal, TypedDict, cast
from urllib.parse import quote, urlencode, urlsplit

Status = Literal["REQUESTED", "APPROVED", "REJECTED", "EXPIRED"]
# Section 2.8.
SourceType = Literal[
    "MULTISPECTRAL", "HYPERSPECTRAL", "SAR", "FULL_MOTION_VIDEO", "PANCHROMATIC", "POINT", "LINESTRING", "POLYGON",
    "HEIGHTMAP", "THERMAL", "GEOMETRYCOLLECTION", "TILES3D", "COMPLEX", "UNKNOWN", "ANNOTATION", "NETCDF",
    "LAND_SUBSIDENCE", "PDF", "IMAGE", "CZML",
]

RETRIES = 5
FIRST_PAUSE_SECONDS, LONGEST_PAUSE_SECONDS, LONGEST_RETRY_AFTER_SECONDS = 0.25, 8.0, 120.0
POLL_SECONDS = 2.5  # every 2 to 5 s (section 4.8, rule 2)
CHUNK_BYTES, LEAST_CHUNK_BYTES, MOST_PARTS = 16 * 1024 * 1024, 64 * 1024, 10_000
NEW_UPLOADS = 3
COMPLETION_SECONDS = 900.0
RENEW_AHEAD_SECONDS, TOKEN_LIFE_SECONDS = 300.0, 3600.0
MOST_ANSWER_BYTES = 4 * 1024 * 1024
LONGEST_REASON = 500


class User(TypedDict, total=False):
    id: str
    email: str
    name: str
    organization: str


class DeliveredFile(TypedDict, total=False):
    fileId: str
    originalName: str
    createdAt: str
    size: int


class PlatformError(Exception):
    """A call that did not succeed. `status` is None without an answer, `code` the platform's word for the error."""

    def __init__(self, call: str, reason: str, status: int | None = None, answer: Any = None, retry_after: float | None = None):
        super().__init__(f"{call}: {reason}")
        self.call = call
        fields = answer if isinstance(answer, dict) else {}
        self.status, self.retry_after = status, retry_after
        self.code: str | None = fields.get("code")
        self.details: list[dict[str, str]] = fields.get("details") or []
        self.expected: int | None = fields.get("expected")

    @property
    def is_transient(self) -> bool:
        """True if the same request may succeed later."""
        return self.status is None or self.status in (408, 425, 429) or self.status >= 500


class UselessAnswer(PlatformError):
    """A redirect, because the key must not go to another server; an answer without what it must have, or of many megabytes."""

    is_transient = False


Body = Callable[[], Iterator[bytes]]


class Platform:
    """The platform at `base_url`, called with the API key of your app."""

    def __init__(self, base_url: str, api_key: str, timeout: float = 60.0):
        parts = urlsplit(base_url)
        if parts.scheme not in ("http", "https") or not parts.hostname or parts.username is not None or parts.password is not None or parts.query:
            raise ValueError("base_url must be an http or https address, without user, password and query")
        api_key = api_key.strip()
        if not api_key or not all("!" <= sign <= "~" for sign in api_key):
            raise ValueError("the API key must be printable ASCII without spaces")
        self._secure, self._netloc, self._prefix = parts.scheme == "https", parts.netloc, parts.path.rstrip("/")
        self._key, self._timeout = api_key, timeout
        self._tls = ssl.create_default_context() if self._secure else None

    def launch(self, token: str) -> Launch:
        """One launch of your app, by its identity token."""
        return Launch(self, token)

    def search(self, bbox: list[float], collections: list[str], interval: str, limit: int = 10, offset: int = 0) -> dict[str, Any]:
        """Items of the catalog (section 4.2), `features` and `numberMatched`."""
        wanted = {"bbox": bbox, "collections": collections, "datetime": interval, "limit": limit, "offset": offset}
        found: dict[str, Any] = self.call("search", "POST", "/public/stac/search", json_body=wanted)
        return found

    def item(self, collection_id: str, item_id: str) -> dict[str, Any]:
        path = f"/public/stac/collections/{_segment(collection_id)}/items/{_segment(item_id)}"
        found: dict[str, Any] = self.call("item", "GET", path)
        return found

    def models(self) -> Any:
        """Models that the platform runs (section 4.3)."""
        return self.call("models", "GET", "/public/inference/models")

    def run_inference(self, model_id: str, file_id: str) -> dict[str, Any]:
        form, content_type = _form({"modelId": model_id, "fileId": file_id}, None)
        job: dict[str, Any] = self.call(
            "run inference", "POST", "/public/inference/run", body=form, content_type=content_type, retries=0
        )
        return job

    def inference_status(self, inference_id: str) -> dict[str, Any]:
        path = f"/public/inference/status?{urlencode({'inferenceId': inference_id})}"
        job: dict[str, Any] = self.call("inference status", "GET", path)
        return job

    def file_status(self, file_id: str) -> dict[str, Any]:
        file: dict[str, Any] = self.call("file status", "GET", f"/public/file/status/{_segment(file_id)}")
        return file

    def call(
        self,
        name: str,
        method: str,
        path: str,
        *,
        json_body: Any = None,
        body: tuple[int, Body] | None = None,
        content_type: str = "application/json",
        headers: Mapping[str, str] | None = None,
        retries: int = RETRIES,
        timeout: float | None = None,
        hide: str = "",
    ) -> Any:
        """Makes a call, and tries again what may succeed later. Returns the JSON of the answer. No error holds `hide` or the key."""
        if json_body is not None:
            data = json.dumps(json_body).encode()
            body = (len(data), lambda: iter([data]))
        for attempt in range(retries + 1):
            try:
                return self._once(name, method, path, body, {"Content-Type": content_type, **(headers or {})}, timeout, hide)
            except PlatformError as error:
                if not error.is_transient or attempt == retries:
                    raise
                pause = min(LONGEST_PAUSE_SECONDS, FIRST_PAUSE_SECONDS * 2**attempt * random.uniform(1, 2))
                if error.retry_after is not None:
                    if error.retry_after > LONGEST_RETRY_AFTER_SECONDS:
                        raise
                    pause = max(pause, error.retry_after)
                time.sleep(pause)
        raise AssertionError("a loop that returns or raises")

    def _once(
        self,
        name: str,
        method: str,
        path: str,
        body: tuple[int, Body] | None,
        headers: Mapping[str, str],
        timeout: float | None,
        hide: str,
    ) -> Any:
        idle = timeout or self._timeout
        connection = (
            http.client.HTTPSConnection(self._netloc, timeout=idle, context=self._tls)
            if self._secure
            else http.client.HTTPConnection(self._netloc, timeout=idle)
        )
        sent = {"X-API-KEY": self._key, "Accept": "application/json", **headers}
        if body is None:
            del sent["Content-Type"]
        else:
            sent["Content-Length"] = str(body[0])
        try:
            try:
                connection.request(method, self._prefix + path, body[1]() if body else None, sent)
            except (BrokenPipeError, ConnectionResetError, ssl.SSLError):
                if connection.sock is None:
                    raise
                # It may have answered before it had read everything.
            response = connection.getresponse()
            data = response.read(MOST_ANSWER_BYTES + 1)
        except (OSError, http.client.HTTPException) as error:
            # Its text may hold the address, and so the token.
            raise PlatformError(name, f"no answer ({type(error).__name__})") from None
        finally:
            connection.close()
        if len(data) > MOST_ANSWER_BYTES:
            raise UselessAnswer(name, f"an answer of more than {MOST_ANSWER_BYTES} bytes", response.status)
        answer = _read(_hidden(data, self._key, hide))
        if 300 <= response.status < 400:
            raise UselessAnswer(name, f"answered {response.status}, a redirect, which is not followed", response.status)
        if response.status >= 400:
            retry_after = _retry_after(response.getheader("Retry-After"), response.getheader("Date"))
            reason = str(answer.get("error") or "")[:LONGEST_REASON] if isinstance(answer, dict) else ""
            raise PlatformError(name, f"{response.status} {reason or response.reason}", response.status, answer, retry_after)
        whole = _read(data)
        if isinstance(whole, str) and whole.strip():
            # Something between the app and the platform has answered.
            raise PlatformError(name, "an answer that is no JSON")
        return whole or {}


class Launch:
    """One launch: its user, its operations and its uploads. Threads may share it."""

    def __init__(self, platform: Platform, token: str):
        self._platform, self._token = platform, token
        self._ends_at: float | None = None  # A launch hands over a token, and not its end.
        self._no_ahead_before, self._ahead = 0.0, RENEW_AHEAD_SECONDS
        self._lock = threading.Lock()

    @property
    def token(self) -> str:
        """The identity token that holds now. Keep it as you would a password."""
        return self._token

    def user(self) -> User:
        """Who launched the app: keep what belongs to different users apart by `id`."""
        user: User = self._call("user", "GET", "/user/{token}/detail")
        return user

    def create_operation(self, name: str, description: str = "", parameters: Mapping[str, Any] | None = None, *, key: str) -> str:
        """Asks the user for approval. The same `key` gives the same operation again, so keep it with your work."""
        wanted = {"name": name, "description": description, "parameters": dict(parameters or {})}
        created = self._call(
            "create operation", "POST", "/operation/{token}", json_body=wanted, headers={"Idempotency-Key": key}
        )
        return _text(created, "operationId", "create operation")

    def operation_status(self, operation_id: str, retries: int = 0) -> Status:
        path = "/operation/{token}?" + urlencode({"operationId": operation_id})
        answer = self._call("operation status", "GET", path, retries=retries)
        return cast(Status, _text(answer, "status", "operation status"))

    def wait_for_decision(self, operation_id: str, poll_seconds: float = POLL_SECONDS) -> Status:
        """One call each interval, and none after the decision. The next call makes up for one that failed."""
        while True:
            time.sleep(poll_seconds)
            try:
                status = self.operation_status(operation_id)
            except PlatformError as error:
                if not error.is_transient:
                    raise
                time.sleep(min(error.retry_after or 0.0, LONGEST_RETRY_AFTER_SECONDS))
                continue
            if status != "REQUESTED":
                return status

    def upload(
        self,
        operation_id: str,
        path: str | os.PathLike[str],
        file_name: str,
        source_type: SourceType = "UNKNOWN",
        chunk_bytes: int = CHUNK_BYTES,
        **facts: Any,
    ) -> DeliveredFile:
        """Uploads a file in chunks. `facts`: acquisitionDate, geometry, layerProperties, vectorMappingProperties."""
        size = os.path.getsize(path)
        if size == 0:
            raise ValueError("the file is empty, and a chunk must hold at least one byte")
        chunk = max(chunk_bytes, math.ceil(size / MOST_PARTS))
        begun = 0
        with open(path, "rb") as file:
            while True:
                try:
                    return self._upload_once(operation_id, file, size, file_name, source_type, chunk, facts)
                except PlatformError as error:
                    halved = chunk // 2
                    if error.call == "chunk" and (error.status == 413 or error.code == "chunk_too_large"):
                        if halved < LEAST_CHUNK_BYTES or math.ceil(size / halved) > MOST_PARTS:
                            raise
                        chunk = halved
                    elif not _needs_new_upload(error) or begun == NEW_UPLOADS:
                        raise
                    else:
                        begun += 1

    def _upload_once(
        self,
        operation_id: str,
        file: BinaryIO,
        size: int,
        file_name: str,
        source_type: SourceType,
        chunk: int,
        facts: Mapping[str, Any],
    ) -> DeliveredFile:
        wanted = {"operationId": operation_id, "fileName": file_name, "sourceType": source_type}
        begun = self._call("begin upload", "POST", "/file/{token}/upload/initiate", json_body=wanted)
        session = {name: _text(begun, name, "begin upload") for name in ("uploadId", "key")}
        parts = math.ceil(size / chunk)
        number, corrections = 1, 0
        while number <= parts:
            start = (number - 1) * chunk
            form, content_type = _form({**session, "partNumber": str(number)}, (file, start, min(chunk, size - start)))
            try:
                self._call("chunk", "POST", "/file/{token}/upload/chunk", body=form, content_type=content_type)
                number += 1
            except PlatformError as error:
                # The platform knows better which part is next: an answer was lost, or a part.
                known = error.expected if error.code == "chunk_out_of_order" else None
                corrections += 1
                if known is None or not 1 <= known <= parts + 1 or corrections > parts:
                    raise
                number = known
        whole: dict[str, Any] = {**session, "fileSize": size, "sourceType": source_type}
        delivered: DeliveredFile
        try:
            delivered = self._complete({**whole, **facts})
        except PlatformError as error:
            if not facts or error.status not in (400, 422) or _needs_new_upload(error):
                raise
            # The file matters more than what is said of it: the facts that the refusal names are left out, then all.
            named = {detail.get("path", "").split(".")[0] for detail in error.details}
            kept = {name: value for name, value in facts.items() if name not in named}
            try:
                delivered = self._complete({**whole, **(kept if len(kept) < len(facts) else {})})
            except PlatformError as refusal:
                if not kept or refusal.status not in (400, 422) or _needs_new_upload(refusal):
                    raise
                delivered = self._complete(whole)
        return delivered

    def _complete(self, completion: Mapping[str, Any]) -> Any:
        # The platform assembles the file before it answers.
        path = "/file/{token}/upload/complete"
        return self._call("complete upload", "POST", path, json_body=completion, timeout=COMPLETION_SECONDS)

    def _call(self, name: str, method: str, path: str, **request: Any) -> Any:
        """A call with the token, which is renewed before it ends, and once if the platform says that it has ended."""
        token = self._current()

        def ask(with_token: str) -> Any:
            address = "/public/external-app" + path.replace("{token}", _segment(with_token))
            return self._platform.call(name, method, address, hide=with_token, **request)

        try:
            return ask(token)
        except PlatformError as error:
            is_stale = error.code in ("token_expired", "token_revoked") or (error.status == 403 and error.code is None)
            if not is_stale:
                raise
            with self._lock:  # Another thread may be renewing it.
                held = self._token
            if held != token:
                return ask(held)  # Another thread has renewed it.
            if error.code == "token_revoked":
                raise
            return ask(self._renewed(token))

    def _current(self) -> str:
        now, token = time.monotonic(), self._token
        if self._ends_at is None or self._ends_at - now > self._ahead or now < self._no_ahead_before:
            return token
        self._no_ahead_before = now + 60.0
        try:
            return self._renewed(token, retries=0)
        except PlatformError:
            return self._token  # The call itself will tell.

    def _renewed(self, used: str, retries: int = RETRIES) -> str:
        with self._lock:
            if self._token != used:
                return self._token
            path = f"/public/external-app/token/{_segment(used)}/renew"
            renewed = self._platform.call("renew token", "POST", path, retries=retries, hide=used)
            self._token = renewed.get("token") or used
            life = _seconds_until(renewed.get("expiresAt"))
            self._ends_at = time.monotonic() + life
            # A short life is renewed ahead by a twelfth of it.
            self._ahead = min(RENEW_AHEAD_SECONDS, life / 12)
            return self._token


def _needs_new_upload(error: PlatformError) -> bool:
    codes = ("upload_session_not_found", "chunk_conflict", "upload_completed", "upload_incomplete", "size_mismatch")
    return error.code in codes or error.code == "chunk_out_of_order" or (
        error.status == 404 and error.code is None and error.call in ("chunk", "complete upload")
    )


def _segment(value: str) -> str:
    if value in ("", ".", ".."):
        raise ValueError("a value of a path must not be empty, . or ..")
    return quote(value, safe="")


def _read(data: bytes) -> Any:
    try:
        return json.loads(data)
    except (ValueError, RecursionError):
        return data.decode("utf-8", "replace")


def _hidden(data: bytes, *secrets: str) -> bytes:
    """An answer without the secrets, which a platform may repeat in an error."""
    for secret in filter(None, secrets):
        for form in (secret, quote(secret, safe="")):
            data = data.replace(form.encode(), b"[redacted]")
    return data


def _text(answer: Any, name: str, call: str) -> str:
    value = answer.get(name) if isinstance(answer, dict) else None
    if not isinstance(value, (str, int)):
        raise UselessAnswer(call, f"the answer has no {name}", 200)
    return str(value)


def _form(fields: Mapping[str, str], part: tuple[BinaryIO, int, int] | None) -> tuple[tuple[int, Body], str]:
    """A form, and its media type. The part of a file is read as it goes out, and again if the call is repeated."""
    boundary = uuid.uuid4().hex
    head = "".join(
        f'--{boundary}\r\nContent-Disposition: form-data; name="{name}"\r\n\r\n{value}\r\n' for name, value in fields.items()
    )
    if part is not None:
        head += f'--{boundary}\r\nContent-Disposition: form-data; name="file"; filename="part"\r\n'
        head += "Content-Type: application/octet-stream\r\n\r\n"
    begin, end = head.encode(), f"{'' if part is None else chr(13) + chr(10)}--{boundary}--\r\n".encode()

    def content() -> Iterator[bytes]:
        yield begin
        if part is not None:
            file, start, left = part
            file.seek(start)
            while left > 0:
                data = file.read(min(left, 256 * 1024))
                if not data:
                    raise ValueError("the file has become shorter")
                left -= len(data)
                yield data
        yield end

    return (len(begin) + (0 if part is None else part[2]) + len(end), content), f"multipart/form-data; boundary={boundary}"


def _retry_after(header: str | None, date: str | None) -> float | None:
    """Seconds that `Retry-After` asks for: a number, or a date by the platform's own clock (RFC 9110)."""
    if header is None:
        return None
    if header.strip().isascii() and header.strip().isdigit() and len(header.strip()) < 10:
        return float(header)
    try:
        until = email.utils.parsedate_to_datetime(header).timestamp()
        now = email.utils.parsedate_to_datetime(date).timestamp() if date else time.time()
    except (TypeError, ValueError):
        return None
    return max(0.0, until - now)


def _seconds_until(instant: Any) -> float:
    try:
        until = datetime.datetime.fromisoformat(str(instant).replace("Z", "+00:00"))
        return (until if until.tzinfo else until.replace(tzinfo=datetime.timezone.utc)).timestamp() - time.time()
    except (ValueError, OverflowError):
        return TOKEN_LIFE_SECONDS

"""Does the flow, a search and an inference job by examples/python/platform_client.py. Prints what came of it as JSON."""
import json
import os
import sys
import threading
import uuid

sys.path.insert(0, os.environ["CLIENT_FOLDER"])
from platform_client import Platform, PlatformError  # noqa: E402

platform = Platform(os.environ["PLATFORM_URL"], os.environ["PLATFORM_API_KEY"], timeout=10)
launch = platform.launch(os.environ["PLATFORM_TOKEN"])


def flow() -> dict:
    user = launch.user()
    operation_id = launch.create_operation("In Python", "Delivers a file.", {"lines": 2}, key=str(uuid.uuid4()))
    status = launch.wait_for_decision(operation_id, 2.0)
    if status != "APPROVED":
        return {"user": user["id"], "status": status}
    # Four threads ask with a token that may have ended: one of them renews it.
    names: list = []
    threads = [threading.Thread(target=lambda: names.append(launch.user()["id"])) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    file = launch.upload(operation_id, os.environ["FILE"], "scene.tif", "MULTISPECTRAL", int(os.environ["CHUNK_BYTES"]))
    return {"user": user["id"], "status": status, "file": file, "names": names}


def catalog() -> dict:
    found = platform.search([-180, -90, 180, 90], ["olinda-coast"], "1900-01-01T00:00:00Z/2100-01-01T00:00:00Z", limit=1)
    item = platform.item("olinda-coast", found["features"][0]["id"])
    models = platform.models()
    job = platform.run_inference(models["models"][0]["id"] if isinstance(models, dict) else models[0]["id"], os.environ["FILE_ID"])
    return {"item": item["id"], "job": platform.inference_status(job["id"])["id"], "file": platform.file_status(os.environ["FILE_ID"])["id"]}


try:
    print(json.dumps({"flow": flow, "catalog": catalog, "user": launch.user}[sys.argv[1]]()))
except PlatformError as error:
    print(json.dumps({"error": str(error), "status": error.status, "code": error.code}))

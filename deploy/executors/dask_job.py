"""Jobs of a Dask cluster, for dask.json: submit NAME MEMORY_MIB COMMAND [LABEL], state NAME, or cancel NAME.

DASK_SCHEDULER_ADDRESS names the scheduler. Its workers have their sizes as resources: dask-worker --resources "memory=8000,gpu=1".
"""
import os
import sys

from dask.distributed import Client, Future, fire_and_forget


def run(command, variables):
    """Runs on a worker. Raises if the job fails."""
    import os
    import subprocess

    subprocess.run(["sh", "-c", command], env={**os.environ, **variables}, check=True)


def state_of(name, dask_scheduler):
    task = dask_scheduler.tasks.get(name)
    return "unknown" if task is None else task.state


action, name, *more = sys.argv[1:]
with Client(os.environ["DASK_SCHEDULER_ADDRESS"], timeout="20s") as client:
    if action == "submit":
        memory, command, *labels = more
        # The worker of the app has put only what a job needs into this environment.
        machine = ("PATH", "HOME", "USER", "LANG", "PWD")
        variables = {key: value for key, value in os.environ.items() if key not in machine}
        resources = {"memory": int(memory), **{label: 1 for label in labels}}
        fire_and_forget(client.submit(run, command, variables, key=name, pure=False, resources=resources))
        # The client must not leave before the scheduler has the task.
        while client.run_on_scheduler(state_of, name) == "unknown":
            pass
    elif action == "state":
        print(client.run_on_scheduler(state_of, name))
    else:
        Future(name, client, inform=False).cancel()

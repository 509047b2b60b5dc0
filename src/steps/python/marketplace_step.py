"""For a step in Python: what it is to do, and how it tells how far it is. Standard library only.

    import marketplace_step

    job = marketplace_step.load()
    red = job.band('red')             # red.path, red.index
    marketplace_step.progress(0.5, 'half of it')
    marketplace_step.refuse('the scene has no clouds')  # the user reads this; the step ends
"""

import json
import os
import sys
from dataclasses import dataclass

# Where progress goes: a descriptor, or stdout in a container image. Nobody listens where it is missing.
_PROGRESS = os.environ.get("MARKETPLACE_PROGRESS")


@dataclass(frozen=True)
class Band:
    path: str
    index: int  # from 1
    names: tuple


class Job:
    """Parameters by name, the input's files, and where the outputs go."""

    def __init__(self, described):
        self.parameters = described["parameters"]
        self.output = described["output"]
        self.outputs = described["outputs"]  # paths, by the names of the declaration
        self.metadata = described["metadata"]  # for dataset.SetMetadata: what made the output
        self.work_folder = described["workFolder"]
        self.inputs = [one["path"] for one in described["inputs"]]
        self.named_inputs = {name: [one["path"] for one in files] for name, files in described["namedInputs"].items()}
        self.bands = [
            Band(one["path"], index, tuple(band["names"]))
            for one in described["inputs"]
            for index, band in enumerate(one["bands"], 1)
        ]

    def band(self, name):
        """The one band that goes by this name; refuses the input where there is none, or several."""
        found = [band for band in self.bands if name.lower() in (known.lower() for known in band.names)]
        if len(found) == 1:
            return found[0]
        if found:
            refuse(f'{len(found)} bands have the name "{name}"', "band_ambiguous")
        known = ", ".join(band.names[0] if band.names else "unnamed" for band in self.bands)
        refuse(f'no band has the name "{name}"; the input has {known}', "band_not_found")


def load():
    """Reads the job file, whose path is the program's last argument."""
    with open(sys.argv[-1], encoding="utf-8") as file:
        return Job(json.load(file))


def progress(fraction, note=None):
    """From 0 to 1."""
    line = {"progress": min(1.0, max(0.0, fraction))}
    if note is not None:
        line["note"] = note
    text = json.dumps(line) + "\n"
    if _PROGRESS == "stdout":
        sys.stdout.write(text)
        sys.stdout.flush()
    elif _PROGRESS is not None:
        os.write(int(_PROGRESS), text.encode())


def refuse(message, code="step_refused"):
    """Ends the step with a reason that its user can act on."""
    with open("error.json", "w", encoding="utf-8") as file:
        json.dump({"message": message[:2000], "code": code}, file, ensure_ascii=False)
    sys.exit(1)

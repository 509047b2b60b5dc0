"""For a step in Python: what it is to do, and how it tells how far it is. Standard library only.

    import marketplace_step

    job = marketplace_step.load()
    red = job.band('red')             # red.path, red.index
    marketplace_step.progress(0.5, 'half of it')
    marketplace_step.refuse('the scene has no clouds')  # the user reads this; the step ends

A step that computes each pixel from the pixels of some bands is one call, with numpy and GDAL for Python. Each argument is
named as the parameter that chooses its band:

    marketplace_step.pixels(lambda green, swir: (green - swir) / (green + swir))
"""

import inspect
import json
import os
import re
import sys
from dataclasses import dataclass

# Where progress goes: a descriptor, or stdout in a container image. Nobody listens where it is missing.
_PROGRESS = os.environ.get("MARKETPLACE_PROGRESS")


@dataclass(frozen=True)
class Band:
    path: str
    index: int  # from 1
    names: tuple
    of_item: dict | None = None  # scale and nodata, where the catalog's item says them


class Job:
    """Parameters by name, the input's files, and where the outputs go."""

    def __init__(self, described):
        self.parameters = described["parameters"]
        self.output = described["output"]
        self.outputs = described["outputs"]  # paths, by the names of the declaration
        self.metadata = described["metadata"]  # for dataset.SetMetadata: what made the output
        self.output_bands = described.get("outputBands") or []  # description, dataType and nodata of each
        self.work_folder = described["workFolder"]
        self.inputs = [one["path"] for one in described["inputs"]]
        self.named_inputs = {name: [one["path"] for one in files] for name, files in described["namedInputs"].items()}
        self.pixels = described.get("pixels") or {}  # of definePixelStep: the input of each argument, and whether it takes stored numbers
        self.bands = _bands(described["inputs"])
        self._bands_of = {name: _bands(files) for name, files in described["namedInputs"].items()}

    def band(self, name, of=None):
        """The one band that goes by this name, in the input `of`; refuses the input where there is none, or several."""
        there = self.bands if of is None else self._bands_of[of]
        found = [band for band in there if name.lower() in (known.lower() for known in band.names)]
        if len(found) == 1:
            return found[0]
        if found:
            refuse(f'{len(found)} bands have the name "{name}"', "band_ambiguous")
        known = ", ".join(band.names[0] if band.names else "unnamed" for band in there)
        refuse(f'no band has the name "{name}"; the input has {known}', "band_not_found")


def _bands(files):
    return [
        Band(one["path"], index, tuple(band["names"]), band.get("ofItem"))
        for one in files
        for index, band in enumerate(one["bands"], 1)
    ]


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


class Reader:
    """Physical values of a band, NaN where it has none: declared nodata, mask and alpha, sign, scale and offset, as the kit's own steps read them."""

    def __init__(self, band, scaling="physical", nodata=None):
        from osgeo import gdal

        gdal.UseExceptions()
        self.dataset = gdal.Open(band.path)
        self.band = self.dataset.GetRasterBand(band.index)
        if gdal.DataTypeIsComplex(self.band.DataType):
            refuse("the band holds complex numbers, and the step takes real ones; make its amplitude or its phase a band first", "complex_values")
        of_item = band.of_item or {}
        own = (_or(self.band.GetScale(), 1.0), _or(self.band.GetOffset(), 0.0))
        item = of_item.get("scale") or {"factor": 1.0, "offset": 0.0}
        if scaling == "stored":
            self.scale = (1.0, 0.0)
        elif scaling not in ("physical", "file"):
            given = [float(one) for one in re.split(r"\s*,\s*", scaling)]
            self.scale = (given[0], given[1] if len(given) > 1 else 0.0)
        else:
            self.scale = own if own != (1.0, 0.0) else (item["factor"], item["offset"])
        declared = self.band.GetNoDataValue()
        self.nodata = next((one for one in (nodata, declared, of_item.get("nodata")) if one is not None), None)
        self.signed = self.band.GetMetadataItem("PIXELTYPE", "IMAGE_STRUCTURE") == "SIGNEDBYTE"
        flags = self.band.GetMaskFlags()
        self.mask = None if flags & gdal.GMF_ALL_VALID or flags == gdal.GMF_NODATA else self.band.GetMaskBand()
        if self.mask is None:
            # GDAL looks for alpha only in rasters of two and of four bands.
            others = [self.dataset.GetRasterBand(i + 1) for i in range(self.dataset.RasterCount) if i + 1 != band.index]
            alphas = [one for one in others if one.GetColorInterpretation() == gdal.GCI_AlphaBand]
            self.mask = alphas[0] if alphas else None

    def read(self, x, y, width, height):
        import numpy as np

        stored = self.band.ReadAsArray(x, y, width, height).astype(np.float64)
        if self.signed:
            stored = np.where(stored > 127, stored - 256, stored)
        gone = np.isnan(stored)
        if self.nodata is not None:
            gone |= (stored == self.nodata) | (stored == np.float32(self.nodata))
        if self.mask is not None:
            gone |= self.mask.ReadAsArray(x, y, width, height) == 0
        values = stored * self.scale[0] + self.scale[1] if self.scale != (1.0, 0.0) else stored
        return np.where(gone, np.nan, values)


def _around(reader, row, rows, reach):
    """Rows of a band with `reach` pixels more on each side, NaN outside the raster."""
    import numpy as np

    width, height = reader.dataset.RasterXSize, reader.dataset.RasterYSize
    if reach == 0:
        return reader.read(0, row, width, rows)
    first, last = max(0, row - reach), min(height, row + rows + reach)
    block = np.full((rows + 2 * reach, width + 2 * reach), np.nan)
    top = first - (row - reach)
    block[top : top + last - first, reach : reach + width] = reader.read(0, first, width, last - first)
    return block


def _or(value, default):
    return default if value is None else value


_USUAL = {"description": "result", "dataType": "Float32", "nodata": None}


# Smallest and largest value of each integer type.
_RANGES = {
    "Byte": (0, 255),
    "Int8": (-128, 127),
    "UInt16": (0, 65535),
    "Int16": (-32768, 32767),
    "UInt32": (0, 4294967295),
    "Int32": (-2147483648, 2147483647),
}


def _masked_statistics(band, mask, strip_rows):
    """Writes the statistics of the pixels that a mask leaves in: GDAL's own count bytes that it leaves out, too."""
    import numpy as np

    def strips():
        for row in range(0, band.YSize, strip_rows):
            rows = min(strip_rows, band.YSize - row)
            window = (0, row, band.XSize, rows)
            yield band.ReadAsArray(*window).astype(np.float64)[mask.ReadAsArray(*window) != 0]

    count = sum(values.size for values in strips())
    if count == 0:
        return
    mean = sum(values.sum() for values in strips()) / count
    variance = sum(((values - mean) ** 2).sum() for values in strips()) / count
    least = min(values.min() for values in strips() if values.size)
    most = max(values.max() for values in strips() if values.size)
    band.SetStatistics(least, most, mean, float(np.sqrt(variance)))
    band.SetMetadataItem("STATISTICS_VALID_PERCENT", f"{100 * count / (band.XSize * band.YSize):.17g}")


def pixels(function, nodata=None, data_type=None, description=None, strip_rows=256, reach=0):
    """Writes what `function` makes of blocks of its bands (numpy arrays of float64, NaN where there is no value) as a Cloud Optimized GeoTIFF.

    Each argument is named as the parameter that chooses its band. For several output bands, `function` returns a tuple. NaN, infinite numbers and
    numbers that the data type cannot store become nodata, or a mask leaves them out of integers without nodata. `definePixelStep` declares data type, nodata and description, and the arguments override
    them. The default is Float32, NaN and "result". Refuses bands on different grids.

    With `reach`, each block has that many more pixels on each side, NaN outside the raster. `function` returns arrays of that shape, or without
    these pixels, and decides itself what a missing neighbour means. Without it, a pixel that one band lacks is missing in the output.
    """
    import numpy as np
    from osgeo import gdal

    job = load()
    names = list(inspect.signature(function).parameters)
    unknown = [name for name in names if not isinstance(job.parameters.get(name), str)]
    if unknown:
        texts = ", ".join(name for name, value in job.parameters.items() if isinstance(value, str) and name != "scaling")
        raise TypeError(f"no parameter {unknown[0]} chooses a band: name each argument as one of {texts}")
    given = {"description": description, "dataType": data_type, "nodata": nodata}
    given = {name: value for name, value in given.items() if value is not None}
    outputs = [{**declared, **given} for declared in job.output_bands or [_USUAL]]
    data_type = outputs[0]["dataType"]
    is_real = data_type.startswith("Float")
    # In JSON NaN is null.
    marks = [float("nan") if one.get("nodata") is None and is_real else one.get("nodata") for one in outputs]
    bands = [job.band(job.parameters[name], (job.pixels.get("of") or {}).get(name)) for name in names]
    scaling = "stored" if job.pixels.get("isStored") else job.parameters.get("scaling", "physical")
    readers = [Reader(one, scaling, job.parameters.get("nodata")) for one in bands]
    first = readers[0].dataset

    def is_same_grid(a, b):
        size = (a.RasterXSize, a.RasterYSize) == (b.RasterXSize, b.RasterYSize)
        pixel = max(abs(a.GetGeoTransform()[1]), abs(a.GetGeoTransform()[5]))
        is_near = all(abs(one - other) <= pixel * 1e-3 for one, other in zip(a.GetGeoTransform(), b.GetGeoTransform()))
        systems = a.GetSpatialRef(), b.GetSpatialRef()
        return size and is_near and (systems == (None, None) or (None not in systems and bool(systems[0].IsSame(systems[1]))))

    if not all(is_same_grid(first, one.dataset) for one in readers):
        refuse("the bands are on different grids; resample one of them first", "grids_differ")
    width, height = first.RasterXSize, first.RasterYSize
    made = gdal.GetDriverByName("GTiff").Create(
        f"{job.work_folder}/pixels.tif", width, height, len(outputs), gdal.GetDataTypeByName(data_type), ["TILED=YES", "BIGTIFF=IF_SAFER"]
    )
    metadata = dict(job.metadata)
    if first.GetMetadataItem("AREA_OR_POINT") == "Point":
        metadata["AREA_OR_POINT"] = "Point"
    made.SetMetadata(metadata)
    if first.GetGeoTransform(can_return_null=True):
        made.SetGeoTransform(first.GetGeoTransform())
    made.SetProjection(first.GetProjection())
    if first.GetGCPCount() > 0:
        made.SetGCPs(first.GetGCPs(), first.GetGCPProjection())
    if first.GetMetadata("RPC"):
        made.SetMetadata(first.GetMetadata("RPC"), "RPC")
    targets = [made.GetRasterBand(i + 1) for i in range(len(outputs))]
    for target, one, mark in zip(targets, outputs, marks):
        target.SetDescription(one["description"])
        if mark is not None:
            target.SetNoDataValue(mark)
    mask = None
    for row in range(0, height, strip_rows):
        rows = min(strip_rows, height - row)
        blocks = [_around(one, row, rows, reach) for one in readers]
        with np.errstate(all="ignore"):
            made_of = function(*blocks) if len(outputs) > 1 else (function(*blocks),)
        lacking = None  # pixels that the mask leaves out
        for values, target, mark in zip(made_of, targets, marks, strict=True):
            values = np.asarray(values, dtype=np.float64)
            if reach > 0 and values.shape == blocks[0].shape:
                values = values[reach:-reach, reach:-reach]
            if values.shape != (rows, width):
                raise TypeError(
                    f"the function must return an array of {rows} x {width} pixels for each output band, as its inputs have, and returned one of shape {values.shape}"
                )
            with np.errstate(all="ignore"):
                gone = ~np.isfinite(values.astype(np.float32)) if data_type == "Float32" else ~np.isfinite(values)
            if reach == 0:
                for block in blocks:
                    gone = gone | np.isnan(block)
            if not is_real:
                values = np.round(np.where(gone, 0, values))
            if data_type in _RANGES:
                low, high = _RANGES[data_type]
                gone = gone | (values < low) | (values > high)
            target.WriteArray(np.where(gone, 0 if mark is None else mark, values), 0, row)
            if mark is not None:
                continue
            if lacking is not None and (gone != lacking).any():
                raise ValueError(
                    f"a pixel is missing in some bands only, which no mask can say: declare a nodata value of {data_type}"
                )
            lacking = gone
        if lacking is not None and (mask is not None or lacking.any()):
            if mask is None:
                made.CreateMaskBand(gdal.GMF_PER_DATASET)
                mask = targets[0].GetMaskBand()
                mask.Fill(255)
            mask.WriteArray(np.where(lacking, 0, 255).astype(np.uint8), 0, row)
        progress(0.6 * (row + rows) / height, "computing")
    made.FlushCache()
    for target in targets:
        try:
            if mask is None:
                target.ComputeStatistics(False)
            else:
                _masked_statistics(target, mask, strip_rows)
        except RuntimeError:
            pass  # nothing has a value
    gdal.GetDriverByName("COG").CreateCopy(
        job.output,
        made,
        options=["COMPRESS=DEFLATE", "PREDICTOR=YES", "BLOCKSIZE=512", "NUM_THREADS=ALL_CPUS", "BIGTIFF=IF_SAFER"]
        + ["RESAMPLING=" + ("AVERAGE" if is_real else "NEAREST")],
        callback=lambda fraction, *_: progress(0.6 + 0.4 * fraction, "writing") or 1,
    )

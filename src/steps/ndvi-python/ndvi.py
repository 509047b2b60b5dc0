"""(A - B) / (A + B) of two bands, as Float32: the pixels of the kit's own step, strip by strip."""

import marketplace_step
import numpy as np
from osgeo import gdal

gdal.UseExceptions()
NODATA = -9999.0
STRIP_ROWS = 256

job = marketplace_step.load()
a, b = (job.band(job.parameters[name]) for name in ("bandA", "bandB"))
opened = {path: gdal.Open(path) for path in {a.path, b.path}}
first, second = opened[a.path], opened[b.path]
def grid(dataset):
    return dataset.RasterXSize, dataset.RasterYSize, dataset.GetGeoTransform(), dataset.GetProjection()


if grid(first) != grid(second):
    marketplace_step.refuse("the two bands are on different grids; resample one of them first", "grids_differ")
bands = [opened[one.path].GetRasterBand(one.index) for one in (a, b)]
missing = [band.GetNoDataValue() for band in bands]
width, height = first.RasterXSize, first.RasterYSize

temporary = f"{job.work_folder}/difference.tif"
difference = gdal.GetDriverByName("GTiff").Create(temporary, width, height, 1, gdal.GDT_Float32, ["TILED=YES", "BIGTIFF=IF_SAFER"])
difference.SetGeoTransform(first.GetGeoTransform())
difference.SetProjection(first.GetProjection())
difference.SetMetadata(job.metadata)
target = difference.GetRasterBand(1)
target.SetNoDataValue(NODATA)
target.SetDescription("normalized difference")

for row in range(0, height, STRIP_ROWS):
    rows = min(STRIP_ROWS, height - row)
    va, vb = (band.ReadAsArray(0, row, width, rows).astype(np.float64) for band in bands)
    total = va + vb
    gone = (total == 0) | np.isnan(total)
    for values, nodata in ((va, missing[0]), (vb, missing[1])):
        if nodata is not None:
            gone |= values == nodata
    with np.errstate(divide="ignore", invalid="ignore"):
        values = np.where(gone, NODATA, (va - vb) / total)
    target.WriteArray(values.astype(np.float32), 0, row)
    marketplace_step.progress(0.6 * (row + rows) / height, "computing")

difference.FlushCache()
gdal.GetDriverByName("COG").CreateCopy(
    job.output,
    difference,
    options=["COMPRESS=DEFLATE", "PREDICTOR=YES", "BLOCKSIZE=512", "RESAMPLING=AVERAGE", "NUM_THREADS=ALL_CPUS", "BIGTIFF=IF_SAFER"],
    callback=lambda fraction, *_: marketplace_step.progress(0.6 + 0.4 * fraction, "writing") or 1,
)

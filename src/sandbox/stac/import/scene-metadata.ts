import * as z from 'zod';

/** Contents of a scene's metadata file; null for missing values. */
export const sceneMetadata = z.object({
  /** The product's own identifier, `LC80200392015216LGN00`. */
  id: z.string().min(1).max(200).nullable(),
  /** Platform in STAC's spelling: `landsat-8`, `sentinel-2a`. */
  platform: z.string().min(1).max(100).nullable(),
  instruments: z.array(z.string().min(1).max(100)).max(10),
  acquiredAtMs: z.number().min(-8.64e15).max(8.64e15).nullable(),
  /** Per cent. */
  cloudCover: z.number().min(0).max(100).nullable(),
  sunAzimuth: z.number().min(0).max(360).nullable(),
  sunElevation: z.number().min(-90).max(90).nullable(),
  /** Scales to reflectance or temperature by band (`B4`, `B04`): `stored * scale + offset`. Empty if unknown. */
  scales: z.record(z.string().max(20), z.object({ scale: z.number(), offset: z.number() })),
  /** The stored number that marks no data in every band; null if unknown. */
  nodata: z.number().nullable(),
  /** Producer of the scene, for the attribution. */
  provider: z.string().min(1).max(200).nullable(),
});
export type SceneMetadata = z.infer<typeof sceneMetadata>;

export const noMetadata: SceneMetadata = {
  id: null,
  platform: null,
  instruments: [],
  acquiredAtMs: null,
  cloudCover: null,
  sunAzimuth: null,
  sunElevation: null,
  scales: {},
  nodata: null,
  provider: null,
};

/** Landsat's `..._MTL.txt`, Sentinel-2's `MTD_*.xml`, a STAC item. */
export const isMetadataName = (name: string): boolean =>
  /(^|[_.-])MTL\.txt$/i.test(name) || /^MTD[^/]*\.xml$/i.test(name) || /\.json$/i.test(name);

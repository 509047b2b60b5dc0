import { band, byGradient, definePixelStep, estimateCog, type OfGradient, z } from '../step-kit.ts';

const radians = Math.PI / 180;

/** Shaded relief of a digital elevation model, by Horn's formula. */
export default definePixelStep({
  id: 'hillshade',
  version: '2.2.0',
  cases: new URL('./cases.json', import.meta.url),
  title: 'Hillshade',
  description:
    'Shaded relief of an elevation raster, lit from one direction or from several. Heights have the unit that the raster states. Without a stated unit they have the unit of the map, or metres on a map in degrees. The z factor corrects other units.',
  bands: {
    band: band({
      default: '1',
      title: 'Elevation band',
      description: 'Name or number of the band that holds heights.',
    }),
  },
  parameters: z.object({
    azimuth: z
      .number()
      .min(0)
      .max(360)
      .default(315)
      .meta({ title: 'Azimuth', description: 'Direction of the light in degrees, clockwise from north.' }),
    altitude: z
      .number()
      .min(0)
      .max(90)
      .default(45)
      .meta({ title: 'Altitude', description: 'Height of the light above the horizon in degrees.' }),
    zFactor: z
      .number()
      .min(0.000001)
      .max(1000)
      .default(1)
      .meta({ title: 'Z factor', description: 'The factor that multiplies heights.' }),
    light: z.enum(['one', 'multidirectional', 'combined']).default('one').meta({
      title: 'Light',
      description:
        'From one direction; from four of them (225°, 270°, 315° and 360°), each as the slope faces it; or from one, darker where the ground is steep.',
    }),
  }),
  input: {
    description: 'An elevation raster (DEM).',
    maxItems: 1,
    synthetic: 'elevation',
    sourceTypes: ['HEIGHTMAP', 'LAND_SUBSIDENCE', 'NETCDF', 'UNKNOWN'],
  },
  output: {
    fileName: 'hillshade.tif',
    sourceType: 'UNKNOWN',
    bands: [{ description: 'hillshade', dataType: 'Byte', nodata: 0 }],
    preview: { ramp: 'gray', range: [1, 255] },
    overviews: 'AVERAGE',
  },
  estimate: (input) => estimateCog(input, { bytesPerPixel: 0.7, secondsPerMegapixel: 0.1 }),
  reach: 1,
  block: ({ azimuth, altitude, zFactor, light }, grid) => {
    const shade = lit(azimuth, altitude, zFactor);
    const of: OfGradient =
      light === 'one'
        ? shade
        : light === 'combined'
          ? (east, north) => combined(shade(east, north), zFactor, east, north)
          : multidirectional(altitude, zFactor);
    return byGradient(grid, {}, (east, north) => 1 + 254 * Math.max(0, of(east, north)));
  },
});

/** Cosine of the angle between the light and the ground. */
function lit(azimuth: number, altitude: number, zFactor: number): OfGradient {
  const up = Math.sin(altitude * radians);
  const along = Math.cos(altitude * radians) * zFactor;
  const [toEast, toNorth] = [Math.sin(azimuth * radians) * along, Math.cos(azimuth * radians) * along];
  const squared = zFactor * zFactor;
  return (east, north) =>
    (up - toEast * east - toNorth * north) / Math.sqrt(1 + squared * (east * east + north * north));
}

/** Combines shade and slope as `gdaldem -combined` does. */
function combined(shade: number, zFactor: number, east: number, north: number): number {
  const slope = Math.atan(zFactor * Math.hypot(east, north));
  return 1 - (Math.acos(Math.min(1, Math.max(-1, shade))) * slope) / (Math.PI / 2) ** 2;
}

/** Combines four lights as `gdaldem -multidirectional` does (Mark 1992): each weighted by the squared cosine of its angle to the aspect. */
function multidirectional(altitude: number, zFactor: number): OfGradient {
  const lights = [225, 270, 315, 360].map((azimuth) => ({
    azimuth: azimuth * radians,
    of: lit(azimuth, altitude, zFactor),
  }));
  const flat = Math.sin(altitude * radians);
  return (east, north) => {
    const steep = Math.hypot(east, north);
    if (steep === 0) return flat;
    const facing = Math.atan2(-east, -north);
    let [sum, whole] = [0, 0];
    for (const { azimuth, of } of lights) {
      const weight = Math.cos(facing - azimuth) ** 2;
      sum += weight * Math.max(0, of(east, north));
      whole += weight;
    }
    return sum / whole;
  };
}

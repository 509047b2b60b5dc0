/** A small uncompressed GeoTIFF made byte by byte, so that tests need no GDAL to make their input. */
export interface TinyRaster {
  readonly width: number;
  readonly height: number;
  readonly value: (x: number, y: number) => number;
  /** Default UInt16. */
  readonly type?: 'UInt16' | 'Float32';
  /** Default UTM 33N. */
  readonly epsg?: number;
  /** West, north and pixel size. */
  readonly origin?: readonly [number, number, number];
  /** GDAL's own tag: items of any metadata domain, as XML. */
  readonly gdalMetadata?: string;
}

export function geoTiff({
  width,
  height,
  value,
  type = 'UInt16',
  epsg = 32633,
  origin = [500_000, 5_000_000, 30],
  gdalMetadata,
}: TinyRaster): Buffer {
  const bytesPerSample = type === 'UInt16' ? 2 : 4;
  const pixels = Buffer.alloc(width * height * bytesPerSample);
  for (let i = 0; i < width * height; i++) {
    const sample = value(i % width, Math.floor(i / width));
    if (type === 'UInt16') pixels.writeUInt16LE(sample, i * 2);
    else pixels.writeFloatLE(sample, i * 4);
  }
  const [west, north, size] = origin;
  const isProjected = epsg >= 20_000 || epsg === 3857;
  const short = (...values: number[]) => ({
    type: 3,
    count: values.length,
    data: Buffer.from(Uint16Array.from(values).buffer),
  });
  const long = (...values: number[]) => ({
    type: 4,
    count: values.length,
    data: Buffer.from(Uint32Array.from(values).buffer),
  });
  const double = (...values: number[]) => ({
    type: 12,
    count: values.length,
    data: Buffer.from(Float64Array.from(values).buffer),
  });
  const ascii = (text: string) => ({ type: 2, count: Buffer.byteLength(text) + 1, data: Buffer.from(`${text}\0`) });
  const geoKeys = [1, 1, 0, 3, 1024, 0, 1, isProjected ? 1 : 2, 1025, 0, 1, 1, isProjected ? 3072 : 2048, 0, 1, epsg];
  const tags: [number, { type: number; count: number; data: Buffer }][] = [
    [256, long(width)],
    [257, long(height)],
    [258, short(bytesPerSample * 8)],
    [259, short(1)],
    [262, short(1)],
    [273, long(0)], // the strip's place, filled in below
    [277, short(1)],
    [278, long(height)],
    [279, long(pixels.length)],
    [339, short(type === 'UInt16' ? 1 : 3)],
    [33550, double(size, size, 0)],
    [33922, double(0, 0, 0, west, north, 0)],
    [34735, short(...geoKeys)],
    ...(gdalMetadata === undefined ? [] : [[42112, ascii(gdalMetadata)] as [number, ReturnType<typeof ascii>]]),
  ];
  const directoryAt = 8;
  let dataAt = directoryAt + 2 + tags.length * 12 + 4;
  const extra: Buffer[] = [];
  const entries = tags.map(([tag, { type: fieldType, count, data }]) => {
    const entry = Buffer.alloc(12);
    entry.writeUInt16LE(tag, 0);
    entry.writeUInt16LE(fieldType, 2);
    entry.writeUInt32LE(count, 4);
    if (data.length <= 4) data.copy(entry, 8);
    else {
      entry.writeUInt32LE(dataAt, 8);
      extra.push(data);
      dataAt += data.length;
    }
    return entry;
  });
  entries[5]!.writeUInt32LE(dataAt, 8);
  const head = Buffer.alloc(10);
  head.write('II*\0', 'latin1');
  head.writeUInt32LE(directoryAt, 4);
  head.writeUInt16LE(tags.length, 8);
  return Buffer.concat([head, ...entries, Buffer.alloc(4), ...extra, pixels]);
}

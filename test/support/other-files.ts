/** Small files of every kind that is no GeoTIFF, made byte by byte. */
import yazl from 'yazl';

export function zip(entries: Readonly<Record<string, Uint8Array>>): Promise<Buffer> {
  const archive = new yazl.ZipFile();
  for (const [name, bytes] of Object.entries(entries)) archive.addBuffer(Buffer.from(bytes), name);
  archive.end();
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    archive.outputStream
      .on('data', (chunk: Buffer) => chunks.push(chunk))
      .on('end', () => resolve(Buffer.concat(chunks)))
      .on('error', reject);
  });
}

export const pdf = Buffer.from(
  '%PDF-1.4\n1 0 obj\n<</Type/Catalog/Pages 2 0 R>>\nendobj\n2 0 obj\n<</Type/Pages/Count 0/Kids[]>>\nendobj\nxref\n0 3\n0000000000 65535 f \n0000000009 00000 n \n0000000054 00000 n \ntrailer\n<</Size 3/Root 1 0 R>>\nstartxref\n103\n%%EOF\n',
);

export const czml = Buffer.from(
  JSON.stringify([
    { id: 'document', name: 'test', version: '1.0' },
    { id: 'a', position: { cartographicDegrees: [10, 50, 0] } },
  ]),
);

const radians = (degrees: number) => (degrees * Math.PI) / 180;
export const tileset = Buffer.from(
  JSON.stringify({
    asset: { version: '1.1' },
    geometricError: 100,
    root: { boundingVolume: { region: [...[10, 50, 11, 51].map(radians), 0, 100] }, geometricError: 10, refine: 'ADD' },
  }),
);

/** An MPEG transport stream of three packets: programs, the map of one with an H.264 stream, filling. */
export function transportStream(streamType = 0x1b): Buffer {
  const packet = (pid: number, section: number[] | null) => {
    const bytes = Buffer.alloc(188, 0xff);
    bytes.set([0x47, (section ? 0x40 : 0) | (pid >> 8), pid & 0xff, 0x10]);
    if (section) bytes.set([0, ...section], 4);
    return bytes;
  };
  const section = (tableId: number, body: number[]) => [
    tableId,
    0xb0,
    body.length + 9,
    0,
    1,
    0xc1,
    0,
    0,
    ...body,
    0,
    0,
    0,
    0,
  ];
  const programs = section(0x00, [0, 1, 0xe1, 0x00]);
  const map = section(0x02, [0xe1, 0x01, 0xf0, 0x00, streamType, 0xe1, 0x01, 0xf0, 0x00]);
  return Buffer.concat([packet(0, programs), packet(0x100, map), packet(0x1fff, null)]);
}

function box(type: string, ...content: Buffer[]): Buffer {
  const body = Buffer.concat(content);
  const head = Buffer.alloc(8);
  head.writeUInt32BE(body.length + 8, 0);
  head.write(type, 4, 'latin1');
  return Buffer.concat([head, body]);
}

/** ISO base media with one track of `handler`. */
export function mp4(handler = 'vide'): Buffer {
  const hdlr = box('hdlr', Buffer.from(`\0\0\0\0\0\0\0\0${handler}\0\0\0\0\0\0\0\0\0\0\0\0\0`, 'latin1'));
  return Buffer.concat([
    box('ftyp', Buffer.from('isom\0\0\x02\0isom', 'latin1')),
    box('moov', box('trak', box('mdia', hdlr))),
    box('mdat', Buffer.alloc(64)),
  ]);
}

/** A NetCDF classic file with one variable of 4 x 3 floats over longitude and latitude. `markers`: attributes of the variable, numbers or a text. `isInteger`: 32-bit integers instead of floats. */
export function netcdf(
  markers: Readonly<Record<string, readonly number[] | string>> = {},
  { isInteger = false }: { readonly isInteger?: boolean } = {},
): Buffer {
  const int = (...values: number[]) =>
    Buffer.concat(
      values.map((value) => {
        const bytes = Buffer.alloc(4);
        bytes.writeInt32BE(value);
        return bytes;
      }),
    );
  const text = (value: string) =>
    Buffer.concat([int(value.length), Buffer.from(value), Buffer.alloc((4 - (value.length % 4)) % 4)]);
  const attribute = (name: string, value: string) => Buffer.concat([text(name), int(2), text(value)]);
  const attributes = (...list: Buffer[]) => Buffer.concat([int(list.length > 0 ? 0x0c : 0, list.length), ...list]);
  const double = 6;
  const float = 5;
  const doubles = (values: number[]) =>
    Buffer.concat(
      values.map((value) => {
        const bytes = Buffer.alloc(8);
        bytes.writeDoubleBE(value);
        return bytes;
      }),
    );
  const floats = (values: number[]) =>
    Buffer.concat(
      values.map((value) => {
        const bytes = Buffer.alloc(4);
        bytes.writeFloatBE(value);
        return bytes;
      }),
    );
  const data = [
    doubles([50.5, 51.5, 52.5]),
    doubles([10.5, 11.5, 12.5, 13.5]),
    isInteger ? int(...Array.from({ length: 12 }, (_, i) => i)) : floats(Array.from({ length: 12 }, (_, i) => i)),
  ];
  const head = (begins: number[]) =>
    Buffer.concat([
      Buffer.from('CDF\x01', 'latin1'),
      int(0, 0x0a, 2),
      text('lat'),
      int(3),
      text('lon'),
      int(4),
      attributes(attribute('Conventions', 'CF-1.6')),
      int(0x0b, 3),
      text('lat'),
      int(1, 0),
      attributes(attribute('units', 'degrees_north'), attribute('standard_name', 'latitude')),
      int(double, 24, begins[0] ?? 0),
      text('lon'),
      int(1, 1),
      attributes(attribute('units', 'degrees_east'), attribute('standard_name', 'longitude')),
      int(double, 32, begins[1] ?? 0),
      text('v'),
      int(2, 0, 1),
      attributes(
        ...Object.entries(markers).map(([name, values]) =>
          typeof values === 'string'
            ? attribute(name, values)
            : Buffer.concat([
                text(name),
                int(isInteger ? 4 : float, values.length),
                isInteger ? int(...values) : floats([...values]),
              ]),
        ),
      ),
      int(isInteger ? 4 : float, 48, begins[2] ?? 0),
    ]);
  const headBytes = head([0, 0, 0]).length;
  return Buffer.concat([head([headBytes, headBytes + 24, headBytes + 56]), ...data]);
}

/** The files of a shapefile with points, in WGS84. */
export function shapefile(points: readonly (readonly [number, number])[]): Record<string, Buffer> {
  const [xs, ys] = [points.map(([x]) => x), points.map(([, y]) => y)];
  const header = (words: number) => {
    const bytes = Buffer.alloc(100);
    bytes.writeInt32BE(9994, 0);
    bytes.writeInt32BE(words, 24);
    bytes.writeInt32LE(1000, 28);
    bytes.writeInt32LE(1, 32);
    [Math.min(...xs), Math.min(...ys), Math.max(...xs), Math.max(...ys)].forEach((value, i) =>
      bytes.writeDoubleLE(value, 36 + i * 8),
    );
    return bytes;
  };
  const records = points.map(([x, y], i) => {
    const bytes = Buffer.alloc(28);
    bytes.writeInt32BE(i + 1, 0);
    bytes.writeInt32BE(10, 4);
    bytes.writeInt32LE(1, 8);
    bytes.writeDoubleLE(x, 12);
    bytes.writeDoubleLE(y, 20);
    return bytes;
  });
  const offsets = points.map((_, i) => {
    const bytes = Buffer.alloc(8);
    bytes.writeInt32BE(50 + i * 14, 0);
    bytes.writeInt32BE(10, 4);
    return bytes;
  });
  const dbf = Buffer.alloc(32 + 32 + 1 + points.length * 2 + 1, 0x20);
  dbf.fill(0, 0, 64);
  dbf.set([3, 124, 1, 1], 0);
  dbf.writeUInt32LE(points.length, 4);
  dbf.writeUInt16LE(65, 8);
  dbf.writeUInt16LE(2, 10);
  dbf.write('n', 32);
  dbf.write('C', 43);
  dbf[48] = 1;
  dbf[64] = 0x0d;
  dbf[dbf.length - 1] = 0x1a;
  const prj = Buffer.from(
    'GEOGCS["GCS_WGS_1984",DATUM["D_WGS_1984",SPHEROID["WGS_1984",6378137,298.257223563]],PRIMEM["Greenwich",0],UNIT["Degree",0.017453292519943295]]',
  );
  return {
    'data/points.shp': Buffer.concat([header(50 + points.length * 14), ...records]),
    'data/points.shx': Buffer.concat([header(50 + points.length * 4), ...offsets]),
    'data/points.dbf': dbf,
    'data/points.prj': prj,
  };
}

export function geojson(geometry: object): Buffer {
  return Buffer.from(
    JSON.stringify({ type: 'FeatureCollection', features: [{ type: 'Feature', properties: {}, geometry }] }),
  );
}

export const kml = Buffer.from(
  '<?xml version="1.0"?><kml xmlns="http://www.opengis.net/kml/2.2"><Document><Placemark><name>a</name><LineString><coordinates>10,50 11,51</coordinates></LineString></Placemark></Document></kml>',
);

/** GML whose schema and whose references lie at `address`. */
export function gml(address: string): Buffer {
  return Buffer.from(`<?xml version="1.0"?>
<ogr:FeatureCollection xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance" xmlns:ogr="http://ogr.maptools.org/" xmlns:gml="http://www.opengis.net/gml" xmlns:xlink="http://www.w3.org/1999/xlink"
  xsi:schemaLocation="http://ogr.maptools.org/ ${address}/wfs?SERVICE=WFS&amp;VERSION=1.0.0&amp;REQUEST=DescribeFeatureType&amp;TYPENAME=a">
  <gml:featureMember><ogr:a fid="a.0"><ogr:geometryProperty><gml:Point srsName="EPSG:4326"><gml:coordinates>10,50</gml:coordinates></gml:Point></ogr:geometryProperty><ogr:other xlink:href="${address}/other.gml#x"/></ogr:a></gml:featureMember>
</ogr:FeatureCollection>`);
}

/** A Matroska file (RFC 9559) of one track, without a frame. `trackType` 1 is video, 2 sound. */
export function matroska(trackType = 1, docType = 'matroska'): Buffer {
  const element = (id: readonly number[], content: Buffer) =>
    Buffer.concat([Buffer.from(id), Buffer.from([0x40 | (content.length >> 8), content.length & 0xff]), content]);
  const header = element([0x1a, 0x45, 0xdf, 0xa3], element([0x42, 0x82], Buffer.from(docType)));
  const entry = element(
    [0xae],
    Buffer.concat([element([0xd7], Buffer.from([1])), element([0x83], Buffer.from([trackType]))]),
  );
  const tracks = element([0x16, 0x54, 0xae, 0x6b], entry);
  // The length of a segment is open in a live recording.
  return Buffer.concat([
    header,
    Buffer.from([0x18, 0x53, 0x80, 0x67, 0x01, 255, 255, 255, 255, 255, 255, 255]),
    tracks,
  ]);
}

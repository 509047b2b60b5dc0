import { createWriteStream } from 'node:fs';
import { once } from 'node:events';
import { seeded } from '../models/seeded.ts';

export interface BenchItem {
  readonly id: string;
  readonly collection: string;
  readonly ms: number;
  readonly ring: readonly (readonly [number, number])[];
}

export const collections = Array.from({ length: 8 }, (_, i) => `bench-${i}`);
export const firstMs = Date.UTC(2016, 0, 1);
export const spanMs = 9 * 365 * 86_400_000;

/** Scenes of 0.2 to 1.8 degrees, turned, most of them in clusters, as satellites' are over land. */
export function* benchItems(count: number): Generator<BenchItem> {
  const random = seeded(7);
  const centres = Array.from(
    { length: 400 },
    () => [random() * 340 - 170, random() * 130 - 60, 1 + random() * 6] as const,
  );
  const normal = () => Math.sqrt(-2 * Math.log(1 - random())) * Math.cos(2 * Math.PI * random());
  for (let i = 0; i < count; i++) {
    const [lon, lat, spread] = centres[Math.floor(random() * centres.length)] ?? [0, 0, 1];
    const isScattered = random() < 0.1;
    const x = Math.max(-177, Math.min(177, isScattered ? random() * 350 - 175 : lon + normal() * spread));
    const y = Math.max(-85, Math.min(85, isScattered ? random() * 150 - 75 : lat + normal() * spread));
    const half = 0.1 + random() * 0.8;
    const turn = (random() - 0.5) * 0.6;
    const corner = (a: number): [number, number] => [
      round(x + half * Math.SQRT2 * Math.cos(a + turn)),
      round(y + half * Math.SQRT2 * Math.sin(a + turn)),
    ];
    const corners = [0, 1, 2, 3].map((k) => corner(Math.PI / 4 + (k * Math.PI) / 2));
    const ring = [...corners, corners[0] ?? [0, 0]];
    yield {
      id: `scene-${String(i).padStart(7, '0')}`,
      collection: collections[Math.floor(random() * collections.length)] ?? '',
      ms: Math.floor(firstMs + random() * spanMs),
      ring,
    };
  }
}

function round(degrees: number): number {
  return Math.round(degrees * 1e5) / 1e5;
}

/** Writes items as STAC, one to a line. */
export async function writeItems(path: string, count: number): Promise<void> {
  const out = createWriteStream(path, { highWaterMark: 4 * 1024 * 1024 });
  let lines: string[] = [];
  for (const { id, collection, ms, ring } of benchItems(count)) {
    const properties = {
      datetime: new Date(ms).toISOString(),
      name: id,
      source_type: 'MULTISPECTRAL',
      'view:off_nadir': (ms % 300) / 10,
    };
    lines.push(
      JSON.stringify({
        type: 'Feature',
        stac_version: '1.0.0',
        id,
        collection,
        geometry: { type: 'Polygon', coordinates: [ring] },
        properties,
        links: [],
        assets: {},
      }),
    );
    if (lines.length < 2_000) continue;
    if (!out.write(`${lines.join('\n')}\n`)) await once(out, 'drain');
    lines = [];
  }
  out.end(lines.length > 0 ? `${lines.join('\n')}\n` : '');
  await once(out, 'finish');
}

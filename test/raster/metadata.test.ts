/** Metadata in a GeoJSON file that has properties of the same name. */
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { addMetadata, readMetadata } from '../../src/raster/metadata.ts';
import { testFolder } from '../support/folders.ts';

test.each([{ name: 'x' }, { name: 'x', metadata: 'mine' }, { note: '"metadata":{"a":"c"}' }])(
  '%j',
  async (properties) => {
    const path = join(await testFolder(), 'a.geojson');
    const features = [{ type: 'Feature', properties, geometry: null }];
    await writeFile(path, JSON.stringify({ type: 'FeatureCollection', features }));
    expect(addMetadata(path, { a: 'b' })).toBe(true);
    expect(readMetadata(path)).toEqual({ a: 'b' });
  },
);

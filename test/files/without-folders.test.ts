import { expect, test } from 'vitest';
import { withoutFolders } from '../../src/files/index.ts';

test.each([
  ['/srv/work/7/scene.tif: bad header', 'scene.tif: bad header'],
  ['cannot open \'/srv/a b.tif\' or "/x/y.tif"', 'cannot open \'a b.tif\' or "y.tif"'],
  ['see https://gdal.org/api/x.html', 'see https://gdal.org/api/x.html'],
  ['3/4 of 1/2', '3/4 of 1/2'],
])('%s', (message, wanted) => {
  expect(withoutFolders(message)).toBe(wanted);
});

import { createWriteStream } from 'node:fs';
import { mkdir, readdir, rm, stat } from 'node:fs/promises';
import { basename, extname, join } from 'node:path';
import { Transform } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { Router, urlencoded } from 'express';
import * as z from 'zod';
import { fileName } from '../../contract/index.ts';
import { rasterExtensions } from '../../raster/index.ts';
import { newId } from '../secrets.ts';
import type { ImportProgress, ImportResult } from '../stac/import/import-items.ts';
import { isMetadataName } from '../stac/import/scene-metadata.ts';
import { requireRoom } from '../uploads/free-space.ts';
import { fileRules } from '../uploads/upload-rules.ts';
import { invalid, parseValues, SandboxError } from '../web/sandbox-error.ts';

const form = urlencoded({ extended: false, limit: '16kb' });
/** Of one folder: a scene has a few dozen. */
const mostFiles = 200;
/** Of one file. */
const mostBytes = 10 * 1024 ** 3;

export interface SceneUploadsOptions {
  /** Where folders lie that were sent; each stays, as items read from it. */
  readonly folder: string;
  /** Takes a folder into the catalog. */
  readonly importPath: (path: string, progress: ImportProgress) => Promise<ImportResult>;
  readonly freeBytes?: ((folder: string) => Promise<number>) | undefined;
}

const newFolder = z.object({ name: fileName });

/** `/files/scenes`: the folder of a scene, file by file, and then one item of it. Only what a scene is made of is taken: rasters, and what describes them. */
export function sceneUploads({ folder, importPath, freeBytes }: SceneUploadsOptions): Router {
  const router = Router();
  /** Throws 404 for what is no folder of this kind. */
  async function folderOf(id: string): Promise<string> {
    const own = /^scene_[A-Za-z0-9_-]+$/.test(id) ? join(folder, id) : null;
    const [inner] = own === null ? [] : await readdir(own).catch(() => []);
    if (own === null || inner === undefined) throw new SandboxError(404, 'path_not_found', 'There is no such folder');
    return join(own, inner);
  }

  router.post('/files/scenes', form, async (req, res) => {
    const { name } = parseValues(newFolder, req.body ?? {});
    const id = newId('scene');
    // The collection is named after it.
    await mkdir(join(folder, id, name), { recursive: true });
    res.status(201).json({ id });
  });
  router.put('/files/scenes/:id/:name', async (req, res) => {
    const into = await folderOf(req.params.id);
    const read = fileName.safeParse(req.params.name);
    if (!read.success || !isOfScene(read.data)) throw invalid([{ path: 'name', message: `must be a raster (${[...rasterExtensions].join(', ')}) or a scene's metadata` }]);
    if ((await readdir(into)).length >= mostFiles) throw invalid([{ path: 'name', message: `is one more than the ${mostFiles} files that a folder may have` }]);
    await requireRoom(folder, fileRules, freeBytes);
    const path = join(into, basename(read.data));
    try {
      await pipeline(req, atMost(mostBytes), createWriteStream(path));
    } catch (error) {
      await rm(path, { force: true });
      throw error;
    }
    res.json({ name: read.data, size: (await stat(path)).size });
  });
  router.post('/files/scenes/:id/import', async (req, res) => {
    const path = await folderOf(req.params.id);
    const refusals: { where: string; reason: string }[] = [];
    if (!(await readdir(path)).some((name) => rasterExtensions.has(extname(name).toLowerCase()))) throw invalid([{ path: 'folder', message: 'holds no raster' }]);
    const { imported } = await importPath(path, { onProgress: () => {}, onRefused: (where, reason) => void refusals.push({ where, reason }) });
    res.json({ imported, refusals });
  });
  return router;
}

const isOfScene = (name: string) => rasterExtensions.has(extname(name).toLowerCase()) || isMetadataName(name);

function atMost(bytes: number): Transform {
  let left = bytes;
  return new Transform({
    transform(chunk: Buffer, _encoding, done) {
      left -= chunk.length;
      if (left < 0) done(invalid([{ path: 'file', message: `must be at most ${bytes} bytes` }]));
      else done(null, chunk);
    },
  });
}

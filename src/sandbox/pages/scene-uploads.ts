import { createWriteStream } from 'node:fs';
import { mkdir, readdir, rename, rm } from 'node:fs/promises';
import { basename, dirname, extname, join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { Router, urlencoded } from 'express';
import * as z from 'zod';
import { fileName } from '../../contract/index.ts';
import { rasterExtensions } from '../../raster/index.ts';
import { newId } from '../secrets.ts';
import type { ImportProgress, ImportResult } from '../stac/import/import-items.ts';
import { isMetadataName } from '../stac/import/scene-metadata.ts';
import { requireRoom, systemFreeBytes } from '../uploads/free-space.ts';
import { fileRules } from '../uploads/upload-rules.ts';
import { invalid, parseValues, SandboxError } from '../web/sandbox-error.ts';

const form = urlencoded({ extended: false, limit: '16kb' });
/** Limit for one folder: a scene has a few dozen files. */
const maxFiles = 200;
/** Limit for one file. */
const maxBytes = 10 * 1024 ** 3;
/** Folders that are being sent. */
const maxOpen = 20;
const forgottenAfterMs = 3_600_000;
const idleWhenFullMs = 60_000;

export interface SceneUploadsOptions {
  /** Folder that gathers incoming folders; emptied at each start. */
  readonly workFolder: string;
  /** Folder for complete folders: items read from there. */
  readonly folder: string;
  /** Takes a folder into the catalog. */
  readonly importPath: (path: string, progress: ImportProgress) => Promise<ImportResult>;
  /** True if a folder of that name would go into a collection outside the imports. */
  readonly isForeign: (name: string) => boolean;
  readonly freeBytes?: ((folder: string) => Promise<number>) | undefined;
}

const newFolder = z.object({ name: fileName });

/** `/files/scenes`: the folder of a scene, file by file, and then one item of it. Only what a scene is made of is taken: rasters, and what describes them. */
export function sceneUploads({ workFolder, folder, importPath, isForeign, freeBytes }: SceneUploadsOptions): Router {
  const router = Router();
  /** Folders before their import, with the time of the last upload. */
  const open = new Map<string, { path: string; usedMs: number }>();

  /** Removes folders without new files for an hour, or for a minute if there are too many folders. */
  async function sweep(): Promise<void> {
    const now = performance.now();
    const idleMs = open.size < maxOpen ? forgottenAfterMs : idleWhenFullMs;
    for (const [id, { path, usedMs }] of open) {
      if (now - usedMs < idleMs) continue;
      open.delete(id);
      await rm(dirname(path), { recursive: true, force: true });
    }
  }
  function folderOf(id: string): string {
    const found = open.get(id);
    if (!found) throw new SandboxError('path_not_found', { message: 'There is no such folder, or it was imported' });
    found.usedMs = performance.now();
    return found.path;
  }

  router.post('/files/scenes', form, async (req, res) => {
    const { name } = parseValues(newFolder, req.body ?? {});
    if (isForeign(name))
      throw invalid([{ path: 'name', message: 'is the name of a collection that the sandbox has; rename the folder' }]);
    await sweep();
    if (open.size >= maxOpen)
      throw new SandboxError('busy', { message: 'Too many folders are under way; try again later' });
    const id = newId('scene');
    // The collection is named after it.
    const path = join(workFolder, id, name);
    await mkdir(path, { recursive: true });
    open.set(id, { path, usedMs: performance.now() });
    res.status(201).json({ id });
  });
  router.put('/files/scenes/:id/:name', async (req, res) => {
    const into = folderOf(req.params.id);
    const read = fileName.safeParse(req.params.name);
    if (!read.success || !isOfScene(read.data))
      throw invalid([
        { path: 'name', message: `must be a raster (${[...rasterExtensions].join(', ')}) or a scene's metadata` },
      ]);
    if ((await readdir(into)).length >= maxFiles)
      throw invalid([{ path: 'name', message: `is one more than the ${maxFiles} files that a folder may have` }]);
    const bytes = Number(req.get('content-length') ?? NaN);
    if (!(bytes >= 0 && bytes <= maxBytes))
      throw invalid([{ path: 'Content-Length', message: `must say how many bytes come, at most ${maxBytes}` }]);
    const room = freeBytes ?? systemFreeBytes;
    await requireRoom(into, fileRules, async (of) => (await room(of)) - bytes);
    const path = join(into, basename(read.data));
    const part = `${path}.part`;
    try {
      await pipeline(req, createWriteStream(part));
      await rename(part, path);
    } catch (error) {
      await rm(part, { force: true });
      throw error;
    }
    res.json({ name: read.data, size: bytes });
  });
  router.post('/files/scenes/:id/import', async (req, res) => {
    const { id } = req.params;
    const gathered = folderOf(id);
    if (!(await readdir(gathered)).some((name) => rasterExtensions.has(extname(name).toLowerCase())))
      throw invalid([{ path: 'folder', message: 'holds no raster' }]);
    open.delete(id);
    await mkdir(folder, { recursive: true });
    await rename(dirname(gathered), join(folder, id));
    const path = join(folder, id, basename(gathered));
    const refusals: { where: string; reason: string }[] = [];
    let imported = 0;
    try {
      ({ imported } = await importPath(path, {
        onProgress: () => {},
        onRefused: (where, reason) => void refusals.push({ where, reason }),
      }));
    } finally {
      // Nothing reads from it.
      if (imported === 0) await rm(dirname(path), { recursive: true, force: true });
    }
    res.json({ imported, refusals });
  });
  return router;
}

const isOfScene = (name: string) => rasterExtensions.has(extname(name).toLowerCase()) || isMetadataName(name);

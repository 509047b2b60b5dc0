import { readdir, readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';
import type { Logger } from 'pino';
import * as z from 'zod';
import { kitFolder, messageOf } from '../../files/index.ts';
import { modelFile, type Model } from '../../raster/index.ts';

export type { Model };

/** The models that ship with the sandbox. */
const shipped = kitFolder('src/sandbox/models');

/**
 * Models of the kit's own folder and of `dataDir`/models, by id; of two with the same id the latter. A
 * folder whose model.json is not right is left out, and the log says why.
 */
export async function loadModels(dataDir: string, log: Logger): Promise<ReadonlyMap<string, Model>> {
  const models = new Map<string, Model>();
  for (const root of [shipped, join(dataDir, 'models')]) {
    const entries = await readdir(root, { withFileTypes: true }).catch(() => []);
    for (const { name } of entries.filter((entry) => entry.isDirectory()).sort((a, b) => (a.name < b.name ? -1 : 1))) {
      const model = await readModel(join(root, name), name).catch((error: unknown) => {
        log.error({ model: name, reason: reasonOf(error) }, 'the sandbox left out a model');
        return null;
      });
      if (model) models.set(name, model);
    }
  }
  return models;
}

async function readModel(folder: string, id: string): Promise<Model> {
  const onnxPath = join(folder, 'model.onnx');
  await stat(onnxPath);
  return { ...modelFile.parse(JSON.parse(await readFile(join(folder, 'model.json'), 'utf8'))), id, onnxPath };
}

function reasonOf(error: unknown): string {
  if (error instanceof z.ZodError)
    return error.issues.map((issue) => `model.json: ${issue.path.join('.')} ${issue.message}`).join('; ');
  return messageOf(error);
}

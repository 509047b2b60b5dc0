import * as z from 'zod';
import { appManifest } from '../../src/contract/app-manifest.ts';
import { wireChanges } from '../../src/contract/profile/wire-changes.ts';
import { modelFile } from '../../src/raster/model/model-file.ts';
import { stepCases } from '../../src/testing/step-battery/cases.ts';

/** Files that people write, with their schemas and what they are. */
const files = {
  'wire-profile': [wireChanges, 'Differences of a platform from the contract (docs/wire-profile.md)'],
  'app-manifest': [appManifest, 'An app as it is registered in the marketplace'],
  model: [modelFile, 'model.json of a model beside its model.onnx (docs/inference.md)'],
  'step-cases': [stepCases, 'cases.json of a step (docs/steps-testing.md)'],
} as const;

/** JSON Schemas for editors, by file name. */
export function schemaFiles(): Map<string, string> {
  return new Map(
    Object.entries(files).map(([name, [schema, title]]) => {
      const made = z.toJSONSchema(schema, { target: 'draft-7', io: 'input', unrepresentable: 'any' });
      const { $schema, ...rest } = made;
      return [`${name}.schema.json`, `${JSON.stringify({ $schema, title, ...rest }, null, 2)}\n`];
    }),
  );
}

// Makes the types of the platform's calls from its OpenAPI document: node make-types.mjs [ADDRESS or FILE] [OUTPUT]
import { writeFile } from 'node:fs/promises';
import { resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import openapiTS, { astToString } from 'openapi-typescript';
import ts from 'typescript';

const [source = 'http://127.0.0.1:4010/openapi.json', output = 'platform-types.d.ts'] = process.argv.slice(2);
const bytes = ts.factory.createTypeReferenceNode('Blob');
const document = /^https?:/.test(source) ? new URL(source) : pathToFileURL(resolve(source));
const types = await openapiTS(document, {
  // The tool makes texts of files.
  transform: (schema) => (schema.format === 'binary' ? bytes : undefined),
});
await writeFile(output, astToString(types));

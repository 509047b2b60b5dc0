// @module-tag all
/** Adds a call to a copy of the code by one row and one handler. Everything else comes from the row. */
import { appendFileSync, cpSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { projectRoot, testFolder } from '../support/folders.ts';
import { startServer } from '../support/processes.ts';
import { apiKey, sandboxClient } from '../support/sandbox.ts';

const row = `import * as z from 'zod';
import { defineCall } from './define-call.ts';
import { noFile, ofFiles } from './errors.ts';

/** POST /public/file/:fileId/note (spec 0). */
export const addNote = defineCall<{ fileId: string; note: { text: string } }, { id: string }>()({
  endpoint: 'file.note',
  group: 'Files',
  permissions: ['files_admin'],
  section: '0',
  summary: 'Add a note',
  description: 'Adds a note to a file, which its owner sees.',
  method: 'POST',
  path: '/public/file/:fileId/note',
  request: z.object({ text: z.string().min(1).describe('The note') }),
  example: { text: 'Checked in the field' },
  answerFields: ['id'],
  errors: { ...ofFiles, ...noFile, 400: null },
  body: 'note',
  decode: (body) => z.object({ id: z.string() }).parse(body),
});
`;

test('an added call is served, checked, documented, faulted and traced', async () => {
  const folder = await testFolder();
  for (const name of ['src', 'scripts', 'bin', 'package.json', 'templates', 'docs'])
    cpSync(join(projectRoot, name), join(folder, name), { recursive: true });
  symlinkSync(join(projectRoot, 'node_modules'), join(folder, 'node_modules'));
  // The row, its place in the table, and the handler.
  writeFileSync(join(folder, 'src/contract/calls/add-note.ts'), row);
  appendFileSync(join(folder, 'src/contract/calls/index.ts'), "export * from './add-note.ts';\n");
  const routes = join(folder, 'src/sandbox/files/routes.ts');
  const code = readFileSync(routes, 'utf8');
  const before = '  calls.on(getFileStatus, ';
  expect(code).toContain(before);
  writeFileSync(
    routes,
    code
      .replace(
        before,
        `  calls.on(addNote, (req, res) => void res.json({ id: parseValues(addNote.request, req.body).text }));\n${before}`,
      )
      .replace('  getFileStatus,', '  addNote,\n  getFileStatus,'),
  );

  const env = { SANDBOX_API_KEY: apiKey, SANDBOX_API_KEY_PERMISSIONS: 'files_admin, external_app', LOG_LEVEL: 'warn' };
  const server = await startServer('sandbox', ['--port', '0', '--data', join(folder, 'data')], env, folder);
  const sandbox = sandboxClient(server.url, join(folder, 'data'), () => server.kill('SIGTERM'));
  const key = { 'x-api-key': apiKey };
  const post = (body: object, headers: Record<string, string> = key) =>
    sandbox.request('POST', '/public/file/f/note', { headers, body });

  expect(await post({ text: 'x' })).toMatchObject({ status: 200, body: { id: 'x' } });
  expect((await post({ text: '' })).status).toBe(400);
  expect((await sandbox.request('GET', '/public/file/f/note', { headers: key })).status).toBe(405);
  expect((await post({ text: 'x' }, {})).status).toBe(401);
  const { apiKey: weak } = (await sandbox.control('POST', 'keys', { permissions: ['inference'] })) as unknown as { apiKey: string }; // oxfmt-ignore
  expect((await post({ text: 'x' }, { 'x-api-key': weak })).status).toBe(403);

  const { paths } = (await sandbox.request('GET', '/openapi.json')).body as unknown as { paths: Record<string, Record<string, { summary: string; requestBody: object }>> }; // oxfmt-ignore
  expect(paths['/public/file/{fileId}/note']!['post']).toMatchObject({ summary: 'Add a note' });
  expect(JSON.stringify(paths['/public/file/{fileId}/note'])).toContain('Checked in the field');

  await sandbox.control('POST', 'faults', { endpoint: 'file.note', effect: { status: 503 }, times: 1 });
  expect([(await post({ text: 'x' })).status, (await post({ text: 'x' })).status]).toEqual([503, 200]);
  const { calls } = (await sandbox.request('GET', '/sandbox/trace')).body as unknown as { calls: { endpoint: string; status: number }[] }; // oxfmt-ignore
  expect(calls.filter(({ endpoint }) => endpoint === 'file.note').map(({ status }) => status)).toEqual([
    200, 400, 401, 403, 503, 200,
  ]);
  await server.kill('SIGTERM');
});

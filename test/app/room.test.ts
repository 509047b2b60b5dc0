/** Effects of a fork's app folder on the app: its name, icon, templates and pages. */
import { mkdir, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { pathToFileURL } from 'node:url';
import supertest from 'supertest';
import { expect, test } from 'vitest';
import myApp from '../../src/my-app/app.ts';
import { launchApp, startApp } from '../support/app.ts';
import { testFolder } from '../support/folders.ts';
import { startSandbox } from '../support/sandbox.ts';

async function room(files: Readonly<Record<string, string>>): Promise<URL> {
  // The path is as below a package manager's own folder.
  const folder = join(await testFolder(), '.store', 'room');
  for (const [name, content] of Object.entries(files)) {
    await mkdir(dirname(join(folder, name)), { recursive: true });
    await writeFile(join(folder, name), content);
  }
  return pathToFileURL(`${folder}/`);
}

test('a template, a part or an asset of the fork stands in for that of the kit, and nothing else changes', async () => {
  const templates = await room({
    'launch.eta':
      "<% layout('./layout', { title: 'Ours' }) %><h1>Our runs</h1><%~ include('/shared/pill', { state: 'COMPLETED' }) %><%~ include('./own-part') %>",
    'own-part.eta': '<p><%= it.app.name %> of <%= it.who %></p>',
    'about.eta':
      "<% layout('./layout', { title: it.title, here: it.here }) %><h1>About</h1><p><%= it.greeting %> <script>no</script></p>",
    'shared/pill.eta': '<b class="ours"><%= it.state %></b>',
    'assets/app.css': 'body { color: rebeccapurple }',
    'shared/style.css': '/* ours */',
    'icon.svg': '<svg xmlns="http://www.w3.org/2000/svg" id="our-icon"/>',
  });
  const sandbox = await startSandbox();
  const app = await startApp(sandbox.url, {
    definition: {
      ...myApp,
      id: 'ours',
      name: 'Flood <mapper>',
      description: 'Maps water.',
      icon: new URL('icon.svg', templates),
      templates,
      pages: [
        {
          path: 'about',
          title: 'About us',
          template: 'about',
          data: ({ user }) => ({ greeting: `Hello <${user.id}>` }),
        },
      ],
    },
  });
  const { session } = await launchApp(sandbox, app, { userId: 'amina' });
  const page = async (path: string) => (await session.get(path)).text();

  const runs = await page('');
  expect(runs).toContain('<h1>Our runs</h1><b class="ours">COMPLETED</b>');
  expect(runs).toMatch(/<p>Flood &lt;mapper> of |<p>Flood &lt;mapper&gt; of /);
  expect(runs).toContain('content="Flood &lt;mapper');
  const about = await page('pages/about');
  expect(about).toContain('Hello &lt;amina');
  expect(about).toMatch(/pages\/about" aria-current="page">About us/);
  // A page of the kit, with the fork's part in it.
  const step = await page('new/cog');
  expect(step).toContain('Cloud Optimized GeoTIFF');
  expect(step).toContain('About us');
  const { id } = await session.start({ stepId: 'cog', input: { type: 'synthetic', size: 64 } });
  expect(await page(`runs/${id}`)).toContain('<b class="ours">');

  const http = supertest(app.handler);
  const asset = async (path: string) => {
    const { text, body } = (await http.get(`/assets/${path}`)) as { text?: string; body: unknown };
    // SVG is no text to it.
    return text ?? String(body);
  };
  expect(await asset('app.css')).toContain('rebeccapurple');
  expect(await asset('shared/style.css')).toBe('/* ours */');
  expect(await asset('icon')).toContain('our-icon');
  expect(await asset('shared/page.js')).toContain('copy');
  expect(await asset('new-run.js')).not.toBe('');
  await http.get('/assets/../launch.eta').expect(404);
  await http.get('/assets/%2e%2e/launch.eta').expect(404);

  const manifest = (await http.get('/manifest').expect(200)).body as object;
  expect(await sandbox.control('POST', 'apps', { ...manifest, launchUrl: `${app.url}/launch` })).toMatchObject({
    id: 'ours',
    name: 'Flood <mapper>',
  });
  // Nobody else's page.
  expect((await fetch(new URL('pages/about', session.home))).status).toBe(404);
});

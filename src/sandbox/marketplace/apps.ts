import { appManifest, type AppManifest } from '../../contract/index.ts';
import type { SandboxDatabase } from '../database.ts';
import { ownJson } from '../../files/index.ts';

const referenceApp: AppManifest = appManifest.parse({
  id: 'reference-app',
  name: 'Reference app',
  description: 'The app of this kit: processes a raster after your approval and delivers the result.',
  launchUrl: 'http://127.0.0.1:3000/launch',
});

/** The apps of the marketplace. There is always the reference app, at its default address. */
export class Apps {
  #database: SandboxDatabase;

  constructor(database: SandboxDatabase) {
    this.#database = database;
    if (!this.find(referenceApp.id)) this.register(referenceApp);
  }

  /** Registers an app; one with the same id is replaced, so that a moved app is registered again. */
  register(manifest: AppManifest): AppManifest {
    this.#database
      .prepare(
        'insert into apps values (?, ?, (select count(*) from apps)) on conflict (id) do update set manifest = excluded.manifest',
      )
      .run(manifest.id, JSON.stringify(manifest));
    return manifest;
  }

  find(id: string): AppManifest | null {
    const row = this.#database
      .prepare<[string], { manifest: string }>('select manifest from apps where id = ?')
      .get(id);
    return row ? ownJson<AppManifest>(row.manifest) : null;
  }

  list(): AppManifest[] {
    const rows = this.#database.prepare<[], { manifest: string }>('select manifest from apps order by position').all();
    return rows.map((row) => ownJson<AppManifest>(row.manifest));
  }
}

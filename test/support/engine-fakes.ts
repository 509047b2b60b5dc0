import { Secret } from '../../src/app/config.ts';
import { openDatabase, type AppDatabase } from '../../src/app/database.ts';
import { createTokenSealer } from '../../src/app/launch/sealed-token.ts';
import { SqlLaunchStore } from '../../src/app/launch/sql-launch-store.ts';
import type { LaunchCalls } from '../../src/platform-client/index.ts';
import { cleanUpLater } from './cleanup.ts';
import { slowly } from './slowly.ts';

/** A platform that approves every operation and accepts every upload. */
export const approvingCalls = slowly({
  createOperation: async () => ({ operationId: 'op', expiresAt: undefined }),
  getOperation: async () => ({ status: 'APPROVED' }),
  initiateUpload: async () => ({ uploadId: 'u', key: 'k' }),
  uploadChunk: async () => ({}),
  completeUpload: async () => ({ fileId: 'file', size: 6 }),
  keepAlive: async () => {},
}) as unknown as LaunchCalls;

/** A database on SQLite with the launch `launch` of the user `u`. */
export async function databaseWithLaunch(folder: string): Promise<AppDatabase> {
  const database = await openDatabase({ dataDir: folder, databaseUrl: null });
  cleanUpLater(() => database.destroy());
  await new SqlLaunchStore(database, createTokenSealer([new Secret('s'.repeat(32))])).begin(
    { id: 'launch', user: { id: 'u' }, createdAtMs: 0 },
    'token',
    { token: 'token', expiresAtMs: null },
  );
  return database;
}

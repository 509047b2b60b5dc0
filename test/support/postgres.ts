import { query, startCluster, type Cluster } from '../../lab/drill/cluster.ts';
import { cleanUpAfterFile } from './cleanup.ts';
import { makeFolder } from './folders.ts';

export { query };

/** A private cluster on a free port, stopped and removed when the file's tests end. */
export async function startPostgres(options?: { isDurable?: boolean }): Promise<Cluster> {
  const cluster = await startCluster(await makeFolder(), options);
  cleanUpAfterFile(() => cluster.remove());
  return cluster;
}

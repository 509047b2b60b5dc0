/** The whole flow with steps that an engine does: the worker is killed meanwhile, and the job is done once. */
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test, vi } from 'vitest';
import { freePort } from '../../src/commands/free-port.ts';
import { fetchedDigest, openSession } from '../support/app.ts';
import { projectRoot, testFolder } from '../support/folders.ts';
import { processesIn, startServer } from '../support/processes.ts';
import { apiKey, startSandbox } from '../support/sandbox.ts';
import { onlyInAll } from '../support/tags.ts';

const within = { timeout: 60_000, interval: 20 };

test(
  'killed while its engine has the step: the next process gets the outputs of the job',
  { tags: [onlyInAll] },
  async () => {
    const sandbox = await startSandbox();
    const [dataDir, jobsFolder, port] = [await testFolder(), join(await testFolder(), 'jobs'), await freePort()];
    const env = {
      PLATFORM_URL: sandbox.url,
      PLATFORM_API_KEY: apiKey,
      APP_SECRET: 'x'.repeat(32),
      DATA_DIR: dataDir,
      POLL_INTERVAL_MS: '2000',
      LOG_LEVEL: 'info',
      PORT: String(port),
      STEP_EXECUTOR: join(projectRoot, 'deploy/executors/processes.json'),
      JOBS_URL: `http://127.0.0.1:${port}`,
      JOBS_FOLDER: jobsFolder,
    };
    const first = await startServer('app', [], env);
    await sandbox.control('POST', 'apps', { id: 'tested', name: 'Tested', launchUrl: `${first.url}/launch` });
    const session = await openSession((await sandbox.launch({ appId: 'tested' })).launchUrl);
    const { id } = await session.start({ stepId: 'cog', input: { type: 'synthetic', size: 2_048 } });
    const operationId = await vi.waitFor(async () => {
      const run = await session.run(id);
      expect(run.operationId).not.toBeNull();
      return run.operationId;
    }, within);
    await sandbox.control('POST', `operations/${operationId}/approve`);
    const jobs = async () => (await readdir(jobsFolder).catch(() => [])).filter((name) => name.endsWith('.pid'));
    await vi.waitFor(async () => expect(await jobs()).toHaveLength(1), within);
    await first.kill('SIGKILL');
    const second = await startServer('app', [], env);
    const run = await vi.waitFor(async () => {
      const current = await session.run(id);
      expect(current.state).toBe('COMPLETED');
      return current;
    }, within);
    expect(await jobs()).toHaveLength(1);
    expect(second.output()).toContain('attached to the job of an earlier attempt');
    expect(await fetchedDigest(sandbox, run.file?.fileId)).toBe(run.output?.sha256);
    expect(run.usage?.cpuSeconds).toBeGreaterThan(0);
    await vi.waitFor(
      () => expect(processesIn(jobsFolder).filter((pid) => pid !== second.child.pid)).toEqual([]),
      within,
    );
    const [log = ''] = (await readdir(jobsFolder)).filter((name) => name.endsWith('.log'));
    const printed = await readFile(join(jobsFolder, log), 'utf8');
    expect(printed).toMatch(/began step-\w+: cog .*\ndelivered\n$/);
    for (const secret of [apiKey, env.APP_SECRET]) expect(`${printed}${second.output()}`).not.toContain(secret);
  },
);

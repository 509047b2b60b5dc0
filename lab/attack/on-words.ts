/** Attacks by words: a child lies to its host, and a forged report lies to `certify verify`. */
import { spawnSync } from 'node:child_process';
import { createHash, generateKeyPairSync, type KeyObject } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createStepHost } from '../../src/app/processing/step-host.ts';
import { describeFailure, failureKindOf } from '../../src/app/runs/run-failure.ts';
import { kitRoot, messageOf, scratchFolder } from '../../src/files/index.ts';
import { digestOfTraces, type Report } from '../../src/commands/certify/report.ts';
import { scenarios } from '../../src/commands/certify/scenarios.ts';
import { signReport } from '../../src/commands/certify/sign.ts';
import { type Attack } from './attack.ts';
import evilApp from './evil-app.ts';
import { app, early, honestReport, scenarioReport, summaryOf } from './honest-report.ts';
import { confinement } from './on-children.ts';

const noPlatform = {
  check: () => Promise.reject(new Error('there is no platform here')),
  fetch: () => Promise.reject(new Error('there is no platform here')),
};

async function lying(lie: string, judge: (seen: Seen) => string | null, stepId = 'evil'): Promise<string | null> {
  const folder = scratchFolder('attack');
  const definition = { module: new URL('./evil-app.ts', import.meta.url).href, steps: evilApp.steps };
  const host = createStepHost({
    ...{ definition, concurrency: 1, platformInput: noPlatform, inputDir: folder.path, limits: { timeoutMs: 20_000 } },
    confinement: await confinement(),
  });
  const parameters: Record<string, string> = stepId === 'evil' ? { lie } : {};
  try {
    const outcome = await host
      .run(
        {
          ...{ owner: 'attacker', stepId, stepVersion: '1.0.0', parameters, input: { type: 'synthetic', size: 64 } },
          workFolder: join(folder.path, 'work'),
        },
        { signal: new AbortController().signal, onProgress: () => {} },
      )
      .then(
        ({ outputs, provenance }) => ({ outputs, provenance, error: null }),
        (error: unknown) => ({ outputs: [], provenance: null, error }),
      );
    return judge({ ...outcome, canStartChildren: host.canStartChildren() });
  } finally {
    await folder.remove();
  }
}

type Outcome = Awaited<ReturnType<ReturnType<typeof createStepHost>['run']>>;
interface Seen {
  readonly outputs: Outcome['outputs'];
  readonly provenance: Outcome['provenance'] | null;
  readonly error: unknown;
  readonly canStartChildren: boolean;
}

/** An honest answer of the same step is taken, so that a refusal says something. */
const honest = () =>
  lying('honest', ({ error }) => (error === null ? null : `an honest step fails: ${messageOf(error)}`));

const lie = (name: string, judge: (seen: Seen) => string | null, stepId?: string): Attack => ({
  ...{ group: 'words of a child', name, isShort: true },
  control: honest,
  attack: () => lying(name, judge, stepId),
});

/** The host repeats nothing, stays ready, and shows the failure as the step's. */
function isOnlyTheSteps({ error, canStartChildren }: Seen): string | null {
  const { code, message, reportedBy } = describeFailure(error);
  if (!canStartChildren) return 'the host takes itself for unable to start processes';
  if (failureKindOf(error) === 'transient') return 'the run would be tried again';
  if (reportedBy !== 'step' || code !== 'job_failed') return `it is shown as ${code} of ${reportedBy ?? 'the app'}`;
  return message.includes('\0') || message.includes('\u202e') ? 'the message holds marks that a page obeys' : null;
}

function isMeasured({ outputs, provenance, error }: Seen): string | null {
  const [output] = outputs;
  if (error !== null || !output || !provenance) return `it failed: ${messageOf(error)}`;
  // The folder is removed at the end, so this happens before.
  const bytes = readFileSync(output.path);
  const sha256 = createHash('sha256').update(bytes).digest('hex');
  if (output.sizeBytes !== bytes.length || output.sha256 !== sha256) return 'size or digest are not the file’s';
  return JSON.stringify(provenance).includes('trusted') || provenance.software['GDAL'] === '<img src=x>'
    ? 'the provenance is the child’s'
    : null;
}

const key = generateKeyPairSync('ed25519');

async function verified(report: object, by: KeyObject = key.privateKey, ...more: string[]): Promise<number | null> {
  const folder = scratchFolder('attack');
  const [file, trusted] = [join(folder.path, 'report.json'), join(folder.path, 'key.pem')];
  writeFileSync(trusted, key.publicKey.export({ type: 'spki', format: 'pem' }));
  // A forged report need not have the shape of one.
  writeFileSync(file, JSON.stringify(await signReport(report as Report, by)));
  try {
    const args = ['certify', 'verify', file, ...(more.length > 0 ? more : ['--public-key', trusted])];
    const command = join(kitRoot, 'bin/marketplace-app-kit.mjs');
    return spawnSync(process.execPath, [command, ...args], { stdio: 'ignore' }).status;
  } finally {
    await folder.remove();
  }
}

const forged = (name: string, attack: () => Promise<number | null>, wanted = 1): Attack => ({
  ...{ group: 'certificates', name, isShort: true },
  control: async () => ((await verified(honestReport())) === 0 ? null : 'an honest report is refused'),
  async attack() {
    const status = await attack();
    return status === wanted ? null : `verify ended with ${status}, and not ${wanted}`;
  },
});

const withFailure = () => summaryOf(scenarios.map((one, i) => scenarioReport(one, i === 0 ? early(one) : undefined)));
const passed = { result: 'PASSED', level: 'exemplary' } as const;

export const onWords: readonly Attack[] = [
  lie('no process can be started', isOnlyTheSteps),
  lie('the disk is full', isOnlyTheSteps),
  lie('other runs fill the disk', isOnlyTheSteps),
  lie('the session has expired', isOnlyTheSteps),
  lie('a false size and a false digest', isMeasured),
  lie('a forged provenance', isMeasured),
  lie('an answer, and then writes on', isMeasured),
  lie(
    'an output that it leaves open',
    ({ error }) => (messageOf(error).includes('left unclosed.tif open') ? null : `the message is: ${messageOf(error)}`),
    'unclosed',
  ),
  forged('a head that says PASSED over a scenario that failed', () => verified({ ...withFailure(), ...passed })),
  forged('rules and head that pass over a trace that does not', () => {
    const honestRules = honestReport().scenarios;
    const scenariosSaid = withFailure().scenarios.map((one, i) => ({ ...one, ...(i === 0 && { rules: honestRules[0]?.rules, result: 'PASSED' }) })); // oxfmt-ignore
    return verified({
      ...honestReport(),
      scenarios: scenariosSaid,
      tracesSha256: digestOfTraces(withFailure().scenarios),
    });
  }),
  forged('one scenario that claims the highest level', () =>
    verified({ ...summaryOf(scenarios.slice(0, 1).map((one) => scenarioReport(one))), ...passed }),
  ),
  forged('an unknown plan', () => verified({ ...honestReport(), planVersion: '0.0.1' })),
  forged('scenarios without a trace', () => {
    const scenariosSaid = honestReport().scenarios.map((one) => ({ ...one, launches: [] }));
    return verified({ ...honestReport(), scenarios: scenariosSaid, tracesSha256: digestOfTraces([]) });
  }),
  forged('a report by a key that the attacker has made', () =>
    verified(honestReport(), generateKeyPairSync('ed25519').privateKey),
  ),
  forged('the same, without a key to trust', () => verified(honestReport(), key.privateKey, '--level', 'robust'), 2),
  forged('another app’s report', () => verifiedWith(['--app', 'http://another.example/launch'])),
  forged('an old report', () => verifiedWith(['--max-age', '1h'])),
];

/** An honest report against a demand that it does not meet. */
async function verifiedWith(demand: readonly string[]): Promise<number | null> {
  const folder = scratchFolder('attack');
  const trusted = join(folder.path, 'key.pem');
  writeFileSync(trusted, key.publicKey.export({ type: 'spki', format: 'pem' }));
  try {
    const meets = await verified(honestReport(), key.privateKey, '--public-key', trusted, '--app', app);
    return meets === 0 ? await verified(honestReport(), key.privateKey, '--public-key', trusted, ...demand) : meets;
  } finally {
    await folder.remove();
  }
}

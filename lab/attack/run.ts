/** `npm run lab -- lab/attack/run.ts`: see `--help`. */
import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import type { Attack } from './attack.ts';
import { confinement, onChildren } from './on-children.ts';
import { onDatabase } from './on-database.ts';
import { onServers } from './on-servers.ts';
import { onWords } from './on-words.ts';

const usage = `npm run lab -- lab/attack/run.ts [options]: attacks the kit, each attack with its control, and prints what held and what broke

  --group NAME        only these; repeatable
  --short             only the attacks that the tests run, too
  --one-user          as the user who starts it (default, where root starts it: once more as another user)
  --no-tests          without the attacks of earlier rounds, which are tests (test/security)

Exits 0 only if nothing broke.`;

const { values } = parseArgs({
  options: {
    group: { type: 'string', multiple: true },
    short: { type: 'boolean', default: false },
    'one-user': { type: 'boolean', default: false },
    'no-tests': { type: 'boolean', default: false },
    help: { type: 'boolean', default: false },
  },
});

/** A user that every system has; it owns nothing here. */
const nobody = 65_534;

if (values.help) console.log(usage);
else process.exit(await main());

async function main(): Promise<number> {
  const all: readonly Attack[] = [...onChildren, ...onWords, ...onServers, ...onDatabase];
  const groups = [...new Set(all.map(({ group }) => group))];
  const unknown = values.group?.find((name) => !groups.includes(name));
  if (unknown !== undefined) {
    console.error(`there is no group ${unknown}; there are ${groups.join(', ')}`);
    return 2;
  }
  const chosen = all.filter(
    ({ group, isShort }) => (values.group?.includes(group) ?? true) && (isShort || !values.short),
  );
  const { summary } = await confinement();
  console.log(`user ${process.getuid?.()}, ${summary}\n`);
  let broken = 0;
  for (const { group, name, attack, control } of chosen) {
    const [reason, shows] = [await attack().catch(String), await control().catch(String)];
    if (reason !== null) broken += 1;
    console.log(
      `${reason === null ? 'held  ' : 'BROKEN'}  ${group.padEnd(16)}  ${name}${reason === null ? '' : `: ${reason}`}${shows === null ? '' : ` (control: ${shows})`}`,
    );
  }
  console.log(`\n${chosen.length - broken} held, ${broken} broken`);
  if (process.getuid?.() === 0 && !values['one-user']) broken += asAnotherUser();
  if (!values['no-tests']) broken += earlierRounds();
  return broken === 0 ? 0 : 1;
}

/** 1 if something broke. */
function asAnotherUser(): number {
  const given = process.argv.slice(2);
  const own = ['--disable-warning=ExperimentalWarning', '--import', './scripts/preload.mjs'];
  const args = [fileURLToPath(import.meta.url), ...given, '--one-user', '--no-tests'];
  const user = [`--reuid=${nobody}`, `--regid=${nobody}`, '--clear-groups'];
  const { status } = spawnSync('setpriv', [...user, process.execPath, ...own, ...args], {
    stdio: 'inherit',
    env: { ...process.env, HOME: '/tmp' },
  });
  return status === 0 ? 0 : 1;
}

function earlierRounds(): number {
  console.log('\nattacks of earlier rounds (test/security/README.md):');
  const vitest = fileURLToPath(new URL('../../node_modules/vitest/vitest.mjs', import.meta.url));
  const { status } = spawnSync(process.execPath, [vitest, 'run', 'test/security'], {
    stdio: 'inherit',
    env: { ...process.env, TEST_ALL: 'yes' },
  });
  return status === 0 ? 0 : 1;
}

import { resolve } from 'node:path';
import { scriptCommand } from '../files/index.ts';
import { callerFolder, wrongArguments } from './arguments.ts';
import { reasonAgainst } from './can-i-deploy/decision.ts';
import { platformReport } from './can-i-deploy/platform-report.ts';
import { readAge } from './certify/options.ts';
import { readReport } from './certify/read-report.ts';
import { levels } from './certify/scenarios.ts';
import { readPublicKey } from './certify/sign.ts';
import { defineCommand } from './command.ts';
import { readJson } from './files.ts';

const usage = `usage: ${scriptCommand('can-i-deploy')} --app REPORT --platform COMPARISON --public-key FILE [options]: decides whether a certified
       app may go live on a platform, and says why not

  --app REPORT           Signed report of the app, which certify wrote with --json and --sign-key
  --platform COMPARISON  Comparison of the platform, which drift --level write wrote with --json
  --public-key FILE      The Ed25519 key that you trust
  --level LEVEL          Level that the app must have reached: protocol, robust or exemplary (default: robust)
  --max-age AGE          Maximum age of both, such as 12h or 30d (default: 30d)
  --name TEXT            Launch address or name that the report must have (default: any)

Exits with 0 for yes, and with 1 for no (docs/can-i-deploy.md).`;

const wrong = (message: string) => wrongArguments(message, usage);

export default defineCommand(import.meta, {
  usage,
  options: {
    app: { type: 'string' },
    platform: { type: 'string' },
    'public-key': { type: 'string' },
    level: { type: 'string', default: 'robust' },
    'max-age': { type: 'string', default: '30d' },
    name: { type: 'string' },
  },
  async run({ values }) {
    const path = (option: 'app' | 'platform' | 'public-key') => {
      const file = values[option];
      if (file === undefined) throw wrong(`--${option} is required`);
      return resolve(callerFolder(), file);
    };
    const level = levels.find((name) => name === values.level);
    if (level === undefined) throw wrong(`--level ${values.level} must be ${levels.join(', ')}`);
    const maxAgeMs = readAge(values['max-age'], usage);
    const [appFile, platformFile, keyFile] = [path('app'), path('platform'), path('public-key')];
    const report = await readReport(appFile);
    const platform = await readJson(platformFile, platformReport, 'a file that drift --json of this release wrote');
    const key = await readPublicKey(keyFile);
    const reason = await reasonAgainst(report, platform, { key, level, app: values.name ?? null, maxAgeMs });
    if (reason !== null) {
      console.log(`no: ${reason}`);
      return 1;
    }
    console.log(
      `yes: ${report.appName ?? report.app}, level ${report.level} at ${report.finishedAt}, on ${platform.platform} as compared at ${platform.finishedAt}`,
    );
    return 0;
  },
});

import { styleText } from 'node:util';
import { prettyFactory } from 'pino-pretty';

const colors = { sandbox: 'cyan', app: 'magenta' } as const;

/** Makes lines of a server's log for people: whose they are, when by the local clock, and what; anything else stays as it is. */
export function logLines(name: 'sandbox' | 'app', hasColors: boolean): (line: string) => string {
  const pretty = prettyFactory({
    colorize: hasColors,
    translateTime: 'SYS:HH:MM:ss.l',
    ignore: 'service,role,pid,hostname,req.headers,res.headers',
    singleLine: true,
  });
  const label = name.padEnd('sandbox'.length);
  const prefix = hasColors ? styleText(colors[name], label, { validateStream: false }) : label;
  return (line) => `${prefix}  ${(line.startsWith('{') ? pretty(line) : line).trimEnd()}`;
}

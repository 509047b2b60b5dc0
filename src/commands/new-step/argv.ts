import { wrongArguments } from '../arguments.ts';

/** Splits `gdaldem slope <input> <output>` as a shell would, and makes placeholders of what stands in angle brackets. */
export function argvOf(command: string, usage: string): string[] {
  const words: string[] = [];
  // Adjacent quoted and bare pieces form one word: --calc="A*2 + 1".
  const word = /\s*((?:"[^"]*"|'[^']*'|[^\s"'])+)/y;
  const text = command.trim();
  while (word.lastIndex < text.length) {
    const [, found] = word.exec(text) ?? [];
    if (found === undefined) throw wrongArguments(`--from ${command}: a quotation mark is not closed`, usage);
    words.push(found.replace(/"([^"]*)"|'([^']*)'/g, (_, double?: string, single?: string) => double ?? single ?? ''));
  }
  if (words.length === 0) throw wrongArguments('--from needs a program and its arguments', usage);
  const shell = words.find((name) => /^(\||\|\||&&|;|>|>>|<<?|2>|\$\(.*|`.*)$/.test(name));
  if (shell !== undefined)
    throw wrongArguments(
      `--from: ${shell} is for a shell, and none reads the command; write a script and name that`,
      usage,
    );
  const argv = words.map((name) => name.replace(/<([A-Za-z_][A-Za-z0-9_]*)>/g, '{$1}'));
  for (const wanted of ['input', 'output'])
    if (!argv.some((name) => name.includes(`{${wanted}}`)))
      throw wrongArguments(`--from: the command must name <${wanted}>`, usage);
  const other = argv.flatMap((argument) => [...argument.matchAll(/\{(\w+)\}/g)].map(([, name = '']) => name)).find((name) => !['input', 'output', 'work'].includes(name)); // oxfmt-ignore
  if (other !== undefined)
    throw wrongArguments(
      `--from: <${other}> is neither <input> nor <output>; put a value there, and make a parameter of it afterwards`,
      usage,
    );
  return argv;
}

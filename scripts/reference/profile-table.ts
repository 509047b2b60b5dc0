import { calls } from '../../src/contract/calls.ts';
import { assumedForm } from '../../src/contract/profile/wire-form.ts';
import { wireCallNames, wireCalls } from '../../src/contract/profile/wire-calls.ts';

const [begin, end] = ['<!-- calls: made by npm run lab -- scripts/reference.ts -->', '<!-- calls end -->'];

/** The page with every call and its fields between its marks, as a profile that changes nothing. Throws where the marks are not there. */
export function withCalls(page: string): string {
  const [from, to] = [page.indexOf(begin), page.indexOf(end)];
  if (from < 0 || to < from) throw new Error(`docs/wire-profile.md needs the lines ${begin} and ${end}`);
  const entries = wireCallNames.map((name) => {
    const { method, path, response, extra } = wireCalls[name];
    const asked = assumedForm(name).fields.filter(({ place }) => place !== 'path');
    const named = (fields: readonly (readonly [string, string])[]) =>
      `{ ${fields.map(([field, wireName]) => `${field}: '${wireName}'`).join(', ')} }`;
    return [
      `    // ${calls[name].summary} (section ${calls[name].section})${extra.length > 0 ? `; also ${extra.join(', ')}` : ''}`,
      `    ${name}: {`,
      `      method: '${method}',`,
      `      path: '${path}',`,
      ...(asked.length === 0
        ? []
        : [`      request: ${named(asked.map(({ field, name: wireName }) => [field, wireName]))},`]),
      ...(response.length === 0 ? [] : [`      response: ${named(response.map((field) => [field, field]))},`]),
      '    },',
    ].join('\n');
  });
  const example = [
    '```ts',
    "import { wireProfile } from '../index.ts';",
    '',
    'export default wireProfile({',
    "  name: 'the contract itself',",
    '  calls: {',
    ...entries,
    '  },',
    '});',
    '```',
  ];
  return `${page.slice(0, from)}${begin}\n\n${example.join('\n')}\n\n${page.slice(to)}`;
}

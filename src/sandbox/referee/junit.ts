import type { Verdict } from './verdict.ts';

/** A suite of one launch for programs that read JUnit's XML: a rule is a case, one that was not exercised is skipped. */
export interface JudgedSuite {
  readonly name: string;
  readonly verdict: Pick<Verdict, 'result' | 'rules'>;
  /** Further cases beside the rules. */
  readonly more?: readonly { readonly name: string; readonly failure: string | null; readonly isSkipped: boolean }[];
}

export function junitXml(suites: readonly JudgedSuite[]): string {
  return `<?xml version="1.0" encoding="UTF-8"?>\n<testsuites>\n${suites.map(suiteXml).join('')}</testsuites>\n`;
}

function suiteXml({ name, verdict, more = [] }: JudgedSuite): string {
  const ruleCases = verdict.rules.map(({ rule, clause, result, violations, violationCount }) => {
    const told = violations
      .map(
        ({ seen, expected, advice, calls }) =>
          `${seen}; expected: ${expected}. ${advice} (calls ${calls.map(({ id }) => id).join(', ')})`,
      )
      .join('\n');
    const inner =
      result === 'failed'
        ? `<failure message="${violationCount} violations">${text(told)}</failure>`
        : result === 'not_exercised'
          ? '<skipped message="not exercised"/>'
          : result === 'warning'
            ? `<system-out>${text(`warning: ${told}`)}</system-out>`
            : '';
    return caseXml(name, `${rule} (${clause})`, inner);
  });
  const moreCases = more.map((extra) =>
    caseXml(
      name,
      extra.name,
      extra.failure !== null
        ? `<failure message="failed">${text(extra.failure)}</failure>`
        : extra.isSkipped
          ? '<skipped message="not exercised"/>'
          : '',
    ),
  );
  const failures =
    verdict.rules.filter(({ result }) => result === 'failed').length +
    more.filter(({ failure }) => failure !== null).length;
  const skipped =
    verdict.rules.filter(({ result }) => result === 'not_exercised').length +
    more.filter((extra) => extra.failure === null && extra.isSkipped).length;
  return `  <testsuite name="${text(name)}" tests="${ruleCases.length + moreCases.length}" failures="${failures}" skipped="${skipped}">\n${[...ruleCases, ...moreCases].join('')}  </testsuite>\n`;
}

function caseXml(suite: string, name: string, inner: string): string {
  const attributes = `classname="${text(suite)}" name="${text(name)}"`;
  return inner === '' ? `    <testcase ${attributes}/>\n` : `    <testcase ${attributes}>${inner}</testcase>\n`;
}

const entities: Readonly<Record<string, string>> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;' };

/** For text and attributes; without the characters that XML 1.0 has no way to write. */
function text(value: string): string {
  return (
    value
      // oxlint-disable-next-line no-control-regex -- those are the characters that XML has not
      .replace(/[\u0000-\u0008\u000b\u000c\u000e-\u001f\ufffe\uffff]/g, '')
      .replace(/[&<>"]/g, (character) => entities[character] ?? '')
  );
}

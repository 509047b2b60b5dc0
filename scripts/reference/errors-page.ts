/** The error codes of the app and of the platform, from their tables. */
import { appErrors, errorMoments } from '../../src/app/app-errors.ts';
import { platformErrors } from '../../src/contract/index.ts';

const titles: Readonly<Record<(typeof errorMoments)[number], string>> = {
  launch: 'Launches',
  request: 'Requests of pages',
  run: 'Failed runs',
  start: 'The start of the app',
};
const people = {
  app: 'developer of the app',
  user: 'user',
  operator: 'operator',
  platform: 'platform',
} as const;

const dependsOnAnswer =
  'The platform uses words that the app does not know. Write `errors` into the wire profile. The advice to users depends on the status.';

export function pageOfErrors(): string {
  const ofApp = errorMoments.map((moment) => {
    const rows = Object.entries(appErrors).filter(([, { when }]) => when === moment);
    return `### ${titles[moment]}

| Code | Who can fix it | What to do |
| --- | --- | --- |
${rows.map(([code, { fixedBy, advice }]) => `| \`${code}\` | ${people[fixedBy]} | ${advice ?? dependsOnAnswer} |`).join('\n')}`;
  });
  return `# Error codes

\`npm run lab -- scripts/reference.ts\` generates this page from the tables in \`src/app/app-errors.ts\` and \`src/contract/error-codes.ts\`. [Troubleshooting](../troubleshooting.md) begins with symptoms instead.

## Codes of the app

A page shows the message and the code of an error, and the advice of the first two tables. An answer under \`/api/\` has \`error\`, \`code\` and \`requestId\`. A failed run keeps its code, message and advice. Steps of your own may have further codes.

${ofApp.join('\n\n')}

## Codes of the platform

The sandbox answers errors with \`error\`, \`code\` and \`requestId\`. If a call has its own message for a status ([contract](../contract.md)), \`error\` is that message. A cause can have another status than its code usually has.

| Code | Status | Who can fix it | Cause |
| --- | --- | --- | --- |
${Object.entries(platformErrors)
  .map(([code, { status, fixedBy, cause }]) => `| \`${code}\` | ${status} | ${people[fixedBy]} | ${cause} |`)
  .join('\n')}
`;
}

import { basename } from 'node:path';
import type { Run, RunStateChange } from './run.ts';

const iso = (ms: number) => new Date(ms).toISOString();

/**
 * W3C PROV of a run as PROV-JSON: one activity, the input files that it used, the outputs that it generated, and the software
 * that did it. Names are below `run:`. Null before outputs exist.
 */
export function provDocument(run: Run, history: readonly RunStateChange[]): object | null {
  const { provenance } = run;
  if (provenance === null) return null;
  const inputs = provenance.inputs.flatMap(({ name, files }) =>
    files.map((file, i) => ({ id: `run:input/${name}/${i + 1}`, name, file })),
  );
  const outputs = run.outputs.map((output) => ({ id: `run:output/${basename(output.path)}`, output }));
  const agents = Object.entries(provenance.software).map(([name, version], i) => ({ id: `run:software/${i + 1}`, name, version })); // oxfmt-ignore
  const entities: [string, object][] = [
    ...inputs.map(({ id, name, file }): [string, object] => [
      id,
      {
        'prov:label': file.fileName,
        'kit:input': name,
        'kit:sizeBytes': file.sizeBytes,
        'kit:sha256': file.sha256,
        ...(file.observedAt !== undefined && { 'kit:acquiredAt': file.observedAt }),
      },
    ]),
    ...outputs.map(({ id, output }): [string, object] => [
      id,
      {
        'prov:label': deliveredAs(run, basename(output.path)),
        'kit:sizeBytes': output.sizeBytes,
        'kit:sha256': output.sha256,
      },
    ]),
  ];
  const activity = 'run:activity';
  const began = history.findLast(({ state }) => state === 'PROCESSING')?.atMs;
  const ended = history.findLast(({ state }) => state === 'UPLOADING')?.atMs;
  return {
    prefix: {
      run: `urn:marketplace-app-kit:run:${run.id}:`,
      kit: 'urn:marketplace-app-kit:terms:',
      xsd: 'http://www.w3.org/2001/XMLSchema#',
    },
    entity: Object.fromEntries(entities),
    activity: {
      [activity]: {
        ...(began !== undefined && { 'prov:startTime': iso(began) }),
        ...(ended !== undefined && { 'prov:endTime': iso(ended) }),
        'prov:type': { $: 'kit:step', type: 'prov:QUALIFIED_NAME' },
        'kit:step': provenance.step.id,
        'kit:version': provenance.step.version,
        'kit:code': provenance.step.code,
        'kit:parameters': JSON.stringify(provenance.parameters),
        'kit:input': JSON.stringify(provenance.input),
        ...(provenance.operationId !== null && { 'kit:operation': provenance.operationId }),
      },
    },
    agent: Object.fromEntries(
      agents.map(({ id, name, version }) => [
        id,
        {
          'prov:type': { $: 'prov:SoftwareAgent', type: 'prov:QUALIFIED_NAME' },
          'prov:label': name,
          'kit:version': version,
        },
      ]),
    ),
    used: numbered('used', inputs, ({ id }) => ({ 'prov:activity': activity, 'prov:entity': id })),
    wasGeneratedBy: numbered('made', outputs, ({ id }) => ({ 'prov:entity': id, 'prov:activity': activity })),
    wasDerivedFrom: numbered(
      'derived',
      outputs.flatMap((made) => inputs.map((used) => ({ made: made.id, used: used.id }))),
      ({ made, used }) => ({ 'prov:generatedEntity': made, 'prov:usedEntity': used, 'prov:activity': activity }),
    ),
    wasAssociatedWith: numbered('by', agents, ({ id }) => ({ 'prov:activity': activity, 'prov:agent': id })),
  };
}

/** Name on the platform of an output, by its name in the declaration. Before its upload: the latter. */
export const deliveredAs = ({ files }: Pick<Run, 'files'>, outputName: string): string =>
  files.find((file) => (file.output ?? file.fileName) === outputName)?.fileName ?? outputName;

/** Relations have names of their own; `_:` is PROV-JSON's for those that mean nothing. */
const numbered = <T>(name: string, all: readonly T[], relation: (source: T) => object) =>
  Object.fromEntries(all.map((source, i) => [`_:${name}${i + 1}`, relation(source)]));

import type { VectorOutput } from '../../steps/step.ts';
import type { ResultFacts } from './result-facts.ts';

/** The words of CSV on the Web for the kit's types of fields. */
const datatypes: Readonly<Record<VectorOutput['fields'][string], string>> = {
  string: 'string',
  integer: 'integer',
  real: 'double',
  boolean: 'boolean',
  date: 'date',
  datetime: 'dateTime',
};

/** Describes a CSV file beside it (W3C, CSV on the Web): its columns, and the facts of the result, so that the columns stay clean. */
export function tableDescription(
  { fileName, fields }: Pick<VectorOutput, 'fileName' | 'fields'>,
  { acquisitionDate, layerProperties }: ResultFacts,
): object {
  return {
    '@context': ['http://www.w3.org/ns/csvw', { '@language': 'en' }],
    url: fileName,
    'dc:title': layerProperties?.title ?? fileName,
    ...(acquisitionDate !== undefined && { 'dc:temporal': acquisitionDate }),
    ...(layerProperties?.sourceItems && {
      'dc:source': layerProperties.sourceItems.map(({ collectionId, itemId }) => `${collectionId}/${itemId}`),
    }),
    ...(layerProperties && {
      'dc:creator': Object.entries(layerProperties.software).map(([name, version]) => `${name} ${version}`),
      'dc:description': `${layerProperties.step} ${layerProperties.stepVersion}`,
    }),
    tableSchema: { columns: Object.entries(fields).map(([name, type]) => ({ name, datatype: datatypes[type] })) },
  };
}

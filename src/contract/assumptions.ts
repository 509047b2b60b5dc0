import { interfaceCalls, type InterfaceRow } from './calls.ts';

/** An assumption of the kit where the specification is silent, by its name. */
export interface Assumption {
  /** Name that marks in the code use for the assumption. */
  readonly id: string;
  /** Clause of the specification, or of the contract. */
  readonly clause: string;
  /** One sentence. */
  readonly assumes: string;
  /** Place to change it: a file below `src`, and a name in that file. */
  readonly file: string;
  readonly symbol: string;
  /** The probe of `npm run drift` that checks it, or the manual check. */
  readonly probe: string | { readonly byHand: string };
}

const later = (hours: string) => ({ byHand: `renew a token ${hours}, and see what is answered` });

/** Assumptions that are not about the shape of one call. */
const general = [
  entry(
    'error-body',
    '7',
    'an error is `{error, code, requestId, details?}`, with the kit’s codes',
    'contract/error-codes.ts',
    'errorBody',
    'refusals',
  ),
  entry(
    'permission-names',
    '5',
    'the permissions of the other groups are `external_app` and `inference`',
    'contract/calls/groups.ts',
    'permissions',
    { byHand: 'look at what the key was issued for' },
  ),

  entry(
    'launch',
    '6',
    'a launch opens the app by a GET with the token in its query, or a POST of a form with it',
    'contract/app-manifest.ts',
    'launchModes',
    { byHand: 'launch the app from the marketplace' },
  ),
  entry(
    'launch-item',
    '6',
    'a launch from an item of the catalog adds `collectionId` and `itemId` beside the token',
    'contract/app-manifest.ts',
    'launchItemFields',
    { byHand: 'launch the app from an item' },
  ),
  entry(
    'launch-token-field',
    '6',
    'the field of a launch is `token`',
    'contract/profile/wire-profile.ts',
    'launchTokenField',
    { byHand: 'launch the app from the marketplace' },
  ),
  entry(
    'app-manifest',
    '1',
    'an app’s manifest has the fields `{id, name, description, launchUrl, launchMode, icon?}`',
    'contract/app-manifest.ts',
    'appManifest',
    { byHand: 'register the app' },
  ),
  entry(
    'platform-pages',
    '1',
    'people approve at `/approvals`, and see an item at `/catalog/{collectionId}/{itemId}`',
    'contract/profile/wire-profile.ts',
    'platformPages',
    { byHand: 'follow the links of the app’s pages' },
  ),

  entry(
    'token-life',
    '5',
    'a token lives 60 minutes from its launch or its last renewal',
    'contract/limits.ts',
    'tokenLifetimeMs',
    'renew-token',
  ),
  entry(
    'token-life-max',
    '5',
    'no renewal carries a token past 12 hours of its launch',
    'contract/limits.ts',
    'tokenLifetimeMaxMs',
    later('12 hours after its launch'),
  ),
  entry(
    'token-renewal-grace',
    '4.8',
    'a token can be renewed until 5 minutes after its end',
    'contract/limits.ts',
    'tokenRenewalGraceMs',
    later('a few minutes after its end'),
  ),
  entry(
    'operation-name-length',
    '4.8',
    'the name of an operation has at most 200 characters',
    'contract/limits.ts',
    'operationNameLength',
    'operation-refusals',
  ),
  entry(
    'operation-parameters-size',
    '4.8',
    '`parameters` has at most 64 KiB of JSON',
    'contract/limits.ts',
    'operationParametersBytes',
    'operation-refusals',
  ),
  entry(
    'several-uploads',
    '4.8',
    'an approved operation takes several uploads',
    'contract/profile/wire-profile.ts',
    'severalOutputs',
    'second-upload',
  ),

  entry('first-part', '4.4', 'parts are numbered from 1', 'contract/limits.ts', 'firstPartNumber', 'upload-chunk'),
  entry(
    'most-parts',
    '4.4',
    'an upload has at most 10,000 parts',
    'contract/limits.ts',
    'maxPartNumber',
    'chunk-refusals',
  ),
  entry('chunk-size', '8', 'a chunk has at most 512 MiB', 'contract/limits.ts', 'chunkBytes', {
    byHand: 'upload a chunk of 513 MiB',
  }),
  entry(
    'idle-upload',
    '4.4',
    'an upload without a chunk for 24 hours is swept',
    'contract/limits.ts',
    'uploadSessionIdleMs',
    { byHand: 'go on with an upload of the day before' },
  ),
  entry(
    'direct-upload-size',
    '8',
    'the 100 MB of a direct upload are 100,000,000 bytes',
    'contract/limits.ts',
    'directUploadBytes',
    { byHand: 'upload 101,000,000 bytes at once' },
  ),
  entry(
    'file-name',
    '4.4',
    'a file’s name is no path, and has no control character',
    'contract/file.ts',
    'fileName',
    'file-refusals',
  ),
  entry(
    'file-name-size',
    '4.4',
    'a file’s name has at most 255 bytes of UTF-8',
    'contract/limits.ts',
    'fileNameBytes',
    'file-refusals',
  ),
  entry(
    'file-geometry',
    '4.4',
    '`geometry` of a completion is WKT, or GeoJSON',
    'contract/files/file-geometry.ts',
    'fileGeometry',
    'file-upload',
  ),
  entry(
    'file-properties-size',
    '4.4',
    'each of a file’s free properties has at most 32 KiB of JSON',
    'contract/limits.ts',
    'filePropertiesBytes',
    'file-refusals',
  ),
  entry(
    'footprint-positions',
    '4.4',
    'a file’s own footprint has at most 1,000 positions',
    'contract/limits.ts',
    'footprintPositions',
    'file-refusals',
  ),
  entry(
    'source-types',
    '2.8',
    'each source type is judged by what proves it',
    'sandbox/inspect/file-kinds.ts',
    'kindOf',
    'file-upload',
  ),
  entry(
    'uploads-collection',
    '2.4',
    'the items of a user’s files are in `uploads-<userId>`',
    'contract/file.ts',
    'collectionOfUploads',
    { byHand: 'search for a file that was delivered' },
  ),
  entry(
    'uploads-of-all-users',
    '5',
    'the app’s API key reads the uploads of all users: the app itself keeps them apart',
    'contract/file.ts',
    'keyReadsAllUploads',
    { byHand: 'search the uploads of a user with the key of another user’s app' },
  ),
  entry(
    'csv-degrees',
    '2.8',
    'columns of longitude and latitude, or of well-known text, are in degrees of WGS84',
    'sandbox/inspect/vector.ts',
    'degreeColumns',
    { byHand: 'upload a CSV file with them' },
  ),

  entry('json-size', '4.2', 'a JSON body has at most 1 MiB', 'contract/limits.ts', 'jsonBodyBytes', 'search-bounds'),
  entry('json-depth', '4.2', 'JSON is nested at most 500 deep', 'contract/limits.ts', 'jsonDepth', 'search-bounds'),
  entry(
    'geometry-positions',
    '4.2',
    'the geometries of a request have at most 5,000 positions',
    'contract/limits.ts',
    'geometryPositions',
    'search-bounds',
  ),
  entry('search-bounds', '4.2', 'what one search may ask is bounded', 'contract/limits.ts', 'search', 'search-bounds'),
  entry(
    'page-size',
    '8',
    'a page of a search has 10 items, and at most 1,000',
    'contract/stac/search-request.ts',
    'pageLimits',
    'search-pages',
  ),
  entry(
    'search-extras',
    '4.2',
    'a search takes `fields`, `ids`, `intersects` and `filter`, as the conformance classes have them',
    'contract/stac/search-request.ts',
    'strictSearchRequest',
    'search-extras',
  ),
  entry(
    'open-interval',
    '4.2',
    'one end of an interval may be open: `..`, or empty',
    'contract/stac/datetime-interval.ts',
    'datetimeInterval',
    'search-extras',
  ),
  entry(
    'items-query',
    '4.1',
    'the items list takes `limit`, `offset`, `bbox` and `datetime`, and nothing else',
    'contract/stac/search-request.ts',
    'itemsQuery',
    'items-list',
  ),
  entry(
    'standard-paths',
    '4.1',
    'the paths that standard STAC clients look for exist',
    'contract/stac/objects.ts',
    'stacPaths',
    'standard-paths',
  ),
  entry(
    'item-bands',
    '2.3',
    'an item says its bands in `eo:bands`, or `bands`',
    'contract/stac/read-catalog.ts',
    'CatalogItem',
    'get-item',
  ),
  entry(
    'item-shape',
    '2.3',
    'an item says its rows and columns in `proj:shape`',
    'contract/stac/read-catalog.ts',
    'CatalogItem',
    'get-item',
  ),
  entry(
    'item-raster',
    '2.3',
    'an item has the source itself as `raster`, or a band each, with the fields of the projection extension',
    'contract/stac/objects.ts',
    'rasterAsset',
    'get-item',
  ),
  entry(
    'antimeridian',
    '2.3',
    'a footprint across the antimeridian is a MultiPolygon',
    'contract/stac/objects.ts',
    'stacItem',
    { byHand: 'search for a scene of the Pacific at 180°' },
  ),
  entry(
    'result-lineage',
    '4.4',
    '`layerProperties` may have `title`, `stepVersion`, `operationId` and `sourceItems` (`{collectionId, itemId}`), which become links of the item',
    'sandbox/stac/lineage.ts',
    'said',
    { byHand: 'upload a file with such `layerProperties`, and read its item' },
  ),
  entry(
    'footprint-hull',
    '2.3',
    'several polygons of a file are one footprint, their hull',
    'sandbox/files/file-items.ts',
    'footprintGiven',
    { byHand: 'upload a file with a MULTIPOLYGON for its geometry' },
  ),
  entry(
    'preview-size',
    '2.3',
    'a preview has at most 1,024 pixels a side',
    'contract/limits.ts',
    'previewSidePixels',
    'preview',
  ),

  entry(
    'inference-types',
    '2.6',
    'a model’s task is SEGMENTATION, CLASSIFICATION or DETECTION',
    'contract/inference/inference.ts',
    'inferenceTypes',
    'list-models',
  ),
  entry(
    'inference-statuses',
    '3.3',
    'a job is SUBMITTED, RUNNING, DONE or FAILED',
    'contract/inference/inference.ts',
    'inferenceStatuses',
    'run-inference',
  ),
] as const satisfies readonly Assumption[];

type IdsOf<Row> = Row extends { readonly assumptions: readonly { readonly id: infer Id extends string }[] }
  ? Id
  : never;
/** The id of an assumption, as `docs/contract.md` lists it. */
export type AssumptionId = (typeof general)[number]['id'] | IdsOf<InterfaceRow>;

/** Assumptions about calls. Each stands in the row of its call. */
const ofCalls = Object.entries(interfaceCalls).flatMap(([name, row]) =>
  (row.assumptions ?? []).map(({ section = row.section, ...assumption }): Assumption => ({
    ...assumption,
    clause: section,
    file: `contract/calls/${name.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}.ts`,
    symbol: name,
  })),
);

/** Every assumption of the kit. The table in docs/contract.md is made of it, and `npm run drift` checks each. */
export const assumptions: readonly (Assumption & { readonly id: AssumptionId })[] = [
  ...general,
  // The type of an identifier follows from the rows.
  ...(ofCalls as (Assumption & { readonly id: AssumptionId })[]),
];

function entry<const Id extends string>(
  id: Id,
  clause: string,
  assumes: string,
  file: string,
  symbol: string,
  probe: Assumption['probe'],
): Assumption & { readonly id: Id } {
  return { id, clause, assumes, file, symbol, probe };
}

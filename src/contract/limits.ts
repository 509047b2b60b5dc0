const minute = 60_000;
const hour = 60 * minute;

/** Every limit of the wire, in one place. Spec section 8 where it says; assumed where marked. */
export const limits = {
  /** Spec 3.1: an operation that nobody decides expires after 30 minutes. */
  operationWindowMs: 30 * minute,
  /** Spec 4.8, rule 2: the status is polled every 2 to 5 seconds. */
  pollIntervalMs: { min: 2_000, max: 5_000 },
  /** Spec 4.6: a download URL lives 24 hours. */
  downloadUrlMs: 24 * hour,

  /** Spec 8: a direct upload is at most 100 MB. @assumed direct-upload-size: a MB is 10^6 bytes */
  directUploadBytes: 100_000_000,

  /** @assumed token-life: of an identity token, from its launch or its last renewal */
  tokenLifetimeMs: 60 * minute,
  /** @assumed token-life-max: no renewal carries a token past this age of its launch */
  tokenLifetimeMaxMs: 12 * hour,
  /** @assumed token-renewal-grace: how long after its expiry a token can still be renewed */
  tokenRenewalGraceMs: 5 * minute,

  /** @assumed operation-name-length */
  operationNameLength: 200,
  /** @assumed operation-parameters-size: of `parameters` as JSON */
  operationParametersBytes: 64 * 1024,
  /** @assumed json-depth: levels of arrays and objects in a free JSON value */
  jsonDepth: 500,
  /** @assumed file-properties-size: of each of a file's free properties (spec 4.4) as JSON: they come back with every item of a page */
  filePropertiesBytes: 32 * 1024,
  /** @assumed geometry-positions: of all geometries of one request together */
  geometryPositions: 5_000,
  /** @assumed footprint-positions: of a file's own footprint (spec 4.4): every search by a geometry compares it */
  footprintPositions: 1_000,
  /** @assumed search-bounds: what one search may ask (spec 4.2) */
  search: {
    /** Entries of `ids` and of `collections`. */
    identifiers: 1_000,
    /** Rules of `sortby`. */
    sortRules: 10,
    /** Names in `fields.include` and in `fields.exclude`. */
    fieldNames: 200,
    fieldNameCharacters: 1_000,
    /** Operators of a filter. */
    filterOperators: 500,
    /** Strings, numbers, times and booleans of a filter. */
    filterLiterals: 5_000,
    /** Number of times that a filter names properties. */
    propertyReferences: 2_000,
    /** Characters of all patterns of a filter together. */
    patternCharacters: 1_000,
    /** Different properties that a filter and `sortby` name. */
    properties: 16,
  },
  /** @assumed json-size: of a JSON request body */
  jsonBodyBytes: 1024 * 1024,
  /** Fields of a form without a file. */
  formFields: 50,
  /** @assumed file-name-size: UTF-8 bytes of an uploaded file's name */
  fileNameBytes: 255,
  /** @assumed first-part: parts are numbered from here */
  firstPartNumber: 1,
  /** @assumed most-parts */
  maxPartNumber: 10_000,
  /** @assumed chunk-size */
  chunkBytes: 512 * 1024 * 1024,
  /** @assumed preview-size: largest side of a rendered preview */
  previewSidePixels: 1024,
  /** @assumed idle-upload: an upload session without a chunk for this long is swept */
  uploadSessionIdleMs: 24 * hour,
} as const;

/** A Postman collection of the platform's calls: the flow in its order, then the catalog, files and inference. Each request uses values of earlier responses. */
import { documentedCalls } from '../../src/sandbox/openapi/document.ts';
import type { DocumentedCall } from '../../src/sandbox/openapi/documented-call.ts';

interface RequestOfFlow {
  /** Id of the call in the OpenAPI document. */
  readonly call: string;
  /** Name of the request. Default: the summary of the call. */
  readonly name?: string;
  /** Variable of the path parameter `id`. */
  readonly id?: 'itemId' | 'fileId';
  /** Lines that run after the response. `body` is its JSON. */
  readonly after?: readonly string[];
  /** Lines that run before the request. */
  readonly before?: readonly string[];
  /** Values of fields and query parameters, instead of those of the example. Undefined leaves a field out. */
  readonly fields?: Readonly<Record<string, unknown>>;
  /** File of a form, relative to the collection. */
  readonly file?: string;
}

const set = (variable: string, value: string) => `pm.collectionVariables.set('${variable}', ${value});`;
const part = 'part.txt';
const partBytes = 5;
const scene = '../../src/sandbox/scenes/olinda-landsat7.tif';
const polled = (name: string) => [
  "const isOver = ['APPROVED', 'REJECTED', 'EXPIRED', 'COMPLETED', 'DONE', 'FAILED'].includes(body.status);",
  "const polls = Number(pm.collectionVariables.get('polls') || 0) + 1;",
  "pm.collectionVariables.set('polls', isOver ? 0 : polls);",
  `if (pm.response.code === 200 && !isOver && polls < 60) pm.execution.setNextRequest('${name}');`,
  "else pm.test('ends well', () => pm.expect(body.status).to.be.oneOf(['APPROVED', 'COMPLETED', 'DONE']));",
];
const pause = ['setTimeout(() => {}, 2000); // the interface asks for 2 to 5 seconds'];

const flow: readonly RequestOfFlow[] = [
  {
    call: 'launch',
    name: 'The marketplace launches an app (the sandbox plays it)',
    fields: { appId: undefined, renewPolicy: 'rotate' },
    after: [set('launchId', 'body.launchId'), set('token', 'body.token')],
  },
  { call: 'renewToken', after: [`if (body.token) ${set('token', 'body.token')}`] },
  { call: 'userDetail' },
  { call: 'createOperation', after: [set('operationId', 'body.operationId')] },
  { call: 'approveOperation', name: 'The user approves (the sandbox plays the user)' },
  {
    call: 'getOperation',
    before: pause,
    after: polled('4. Status of an operation'),
  },
  { call: 'initiateUpload', after: [set('uploadId', 'body.uploadId'), set('uploadKey', 'body.key')] },
  { call: 'uploadChunk', file: part },
  {
    call: 'completeUpload',
    fields: { fileSize: partBytes, geometry: undefined, acquisitionDate: undefined },
    after: [set('fileId', 'body.fileId')],
  },
  { call: 'getVerdict', name: 'The referee judges the calls of the launch' },
];
const catalog: readonly RequestOfFlow[] = [
  {
    call: 'getRootCatalog',
    after: [
      set(
        'catalogId',
        "(body.links.filter(({ rel }) => rel === 'child').map(({ href }) => /catalogs\\/([^/?#]+)\\/?$/.exec(href)).find(Boolean) || [])[1]",
      ),
    ],
  },
  { call: 'getCatalog' },
  {
    call: 'getCollections',
    after: [
      set('collectionId', "(body.collections.find(({ id }) => !id.startsWith('uploads-')) || body.collections[0]).id"),
    ],
  },
  { call: 'getCollection' },
  { call: 'getItems', fields: { limit: 5 }, after: [set('itemId', '(body.features[0] || {}).id')] },
  { call: 'getItem', id: 'itemId' },
  { call: 'searchItems' },
  {
    call: 'getSearch',
    fields: { token: undefined, bbox: '-180,-90,180,90', collections: '{{collectionId}}', limit: 5 },
  },
  { call: 'getConformance' },
  { call: 'getSortables' },
];
const files: readonly RequestOfFlow[] = [
  { call: 'generateUploadId', after: [set('uploadId', 'body.uploadId'), set('uploadKey', 'body.key')] },
  { call: 'uploadFileChunk', file: part },
  {
    call: 'completeFileUpload',
    fields: { fileSize: partBytes, geometry: undefined, acquisitionDate: undefined },
    after: [set('fileId', 'body.fileId')],
  },
  { call: 'uploadFile', file: scene, after: [set('fileId', 'body.fileId')] },
  {
    call: 'getFileStatus',
    id: 'fileId',
    before: pause,
    after: polled('Processing status of a file'),
  },
  { call: 'getDownloadUrl' },
];
const inference: readonly RequestOfFlow[] = [
  { call: 'listModels' },
  { call: 'runInference', fields: { geometry: undefined }, after: [set('inferenceId', 'body.id')] },
  {
    call: 'getInferenceStatus',
    before: pause,
    after: polled('Status of a job'),
  },
  { call: 'downloadInference' },
];

/** Variables of the collection, by the names of fields and parameters. */
const variables: Readonly<Record<string, string>> = {
  ...{ token: 'token', launchId: 'launchId', operationId: 'operationId', uploadId: 'uploadId', key: 'uploadKey' },
  ...{ fileId: 'fileId', catalogId: 'catalogId', collectionId: 'collectionId', inferenceId: 'inferenceId' },
  ...{ inferenceJobId: 'inferenceId' },
};

function requestOf({ call: callId, name, id, before = [], after = [], fields = {}, file }: RequestOfFlow): object {
  const call = documentedCalls.find((documented) => documented.id === callId);
  if (!call) throw new Error(`there is no call ${callId}`);
  const valueOf = (field: string, example: unknown): unknown =>
    field in fields ? fields[field] : field in variables ? `{{${variables[field]}}}` : example;
  const filled = (example: unknown) =>
    Object.fromEntries(
      Object.entries({ ...(example as object), ...fields })
        .map(([field, value]) => [field, valueOf(field, value)] as const)
        .filter(([, value]) => value !== undefined),
    );
  const variableOf = (parameter: string) => (parameter === 'id' ? id : variables[parameter]);
  const path = call.path.replace(/:(\w+)/g, (_, parameter: string) => `{{${variableOf(parameter)}}}`);
  const query = Object.keys(call.query?.shape ?? {})
    .map((parameter) => ({ key: parameter, value: valueOf(parameter, undefined) }))
    .filter(({ value }) => value !== undefined)
    .map(({ key, value }) => ({ key, value: String(value) }));
  const script = (listen: string, lines: readonly string[]) => ({
    listen,
    script: { type: 'text/javascript', exec: lines },
  });
  const success = call.success ?? 200;
  return {
    name: name ?? call.summary,
    event: [
      ...(before.length === 0 ? [] : [script('prerequest', before)]),
      script('test', [
        `pm.test('answers ${success}', () => pm.response.to.have.status(${success}));`,
        ...(after.length === 0 ? [] : ['const body = pm.response.json();', ...after]),
      ]),
    ],
    request: {
      method: call.method.toUpperCase(),
      description: call.description,
      header: Object.keys(call.headers?.shape ?? {}).map((key) => ({ key, value: '{{$guid}}' })),
      ...bodyOf(call, filled, file),
      url: { raw: `{{baseUrl}}${path}`, host: ['{{baseUrl}}'], path: path.slice(1).split('/'), query },
    },
  };
}

function bodyOf(call: DocumentedCall, filled: (example: unknown) => object, file: string | undefined): object {
  if (call.form) {
    const fields = Object.entries(filled(call.example)).map(([key, value]) => ({ key, value: String(value) }));
    if (call.form.file === undefined) return { body: { mode: 'urlencoded', urlencoded: fields } };
    const formdata = [
      ...fields.map((field) => ({ ...field, type: 'text' })),
      { key: call.form.file, type: 'file', src: file },
    ];
    return { body: { mode: 'formdata', formdata } };
  }
  if (!call.json) return {};
  const raw = JSON.stringify(filled(call.example), null, 2);
  return { body: { mode: 'raw', raw, options: { raw: { language: 'json' } } } };
}

/** The files of docs/postman, by name. */
export function postmanFiles(): Map<string, string> {
  const folders = { 'The flow': flow, Catalog: catalog, Files: files, Inference: inference };
  const collection = {
    info: {
      name: 'Geospatial marketplace platform',
      description:
        'Made from the OpenAPI document. Set baseUrl and apiKey, then run the requests in order. Each request uses values of earlier responses.',
      schema: 'https://schema.getpostman.com/json/collection/v2.1.0/collection.json',
    },
    auth: {
      type: 'apikey',
      apikey: [
        { key: 'key', value: 'X-API-Key' },
        { key: 'value', value: '{{apiKey}}' },
        { key: 'in', value: 'header' },
      ],
    },
    variable: [
      { key: 'baseUrl', value: 'http://127.0.0.1:4010' },
      { key: 'apiKey', value: '' },
      ...[...new Set([...Object.values(variables), 'itemId'])].map((key) => ({ key, value: '' })),
    ],
    item: Object.entries(folders).map(([name, requests]) => ({ name, item: requests.map(requestOf) })),
  };
  return new Map([
    ['collection.json', `${JSON.stringify(collection, null, 2)}\n`],
    [part, 'x'.repeat(partBytes)],
  ]);
}

/** The rooms of `src`, with the rooms that each may import. docs/architecture.md has a picture. */
const standsOn = {
  contract: [],
  files: ['contract'],
  child: ['contract', 'files'],
  server: ['contract', 'files'],
  raster: ['contract', 'files', 'child'],
  'platform-client': ['contract'],
  steps: ['contract', 'files', 'child', 'raster'],
  sandbox: ['contract', 'files', 'child', 'server', 'raster'],
  app: ['contract', 'files', 'child', 'server', 'raster', 'platform-client', 'steps'],
  drift: ['contract', 'platform-client'],
  testing: ['contract', 'files', 'child', 'server', 'raster', 'platform-client', 'steps', 'app', 'sandbox'],
  'my-app': [],
  commands: [
    'contract',
    'files',
    'child',
    'server',
    'raster',
    'platform-client',
    'steps',
    'app',
    'sandbox',
    'drift',
    'testing',
  ],
};

/**
 * Modules by which other rooms enter one. Raster and steps have none: a child loads no more than it needs, and a server reads a
 * step's declaration without GDAL. App, sandbox, drift and testing have a public `index.ts`; only commands and testing stand on
 * them, assemble them from their parts, and load no more than a command needs.
 */
const faces = {
  contract: ['index', 'antimeridian', 'did-you-mean', 'keys', 'kit-error'],
  files: ['index'],
  child: ['index', 'in-child', 'protocol'],
  server: ['index'],
  'platform-client': ['index'],
};

/** The folders of two large rooms, the lowest first. A folder imports only those before it, and the modules beside the folders. */
const floors = {
  app: ['processing', 'upload', 'web', 'definition', 'launch', 'catalog', 'runs', 'execution', 'monitoring', 'pages'],
  sandbox: [
    ...['inspect', 'web', 'identity', 'uploads', 'marketplace', 'referee', 'call', 'stac', 'files', 'external-app'],
    ...['inference', 'control', 'openapi', 'pages'],
  ],
};

/** @type {import('dependency-cruiser').IConfiguration} */
export default {
  forbidden: [
    {
      name: 'no-circles',
      comment: 'Two modules that import each other are one module, or a third is missing. Types count, too.',
      severity: 'error',
      from: {},
      to: { circular: true },
    },
    ...Object.entries(standsOn).map(([room, others]) => ({
      name: `room-${room}`,
      comment: others.length > 0 ? `${room} stands on ${others.join(', ')} only` : `${room} stands on nothing`,
      severity: 'error',
      from: { path: `^src/${room}/` },
      to: { path: `^src/[^/]+/`, pathNot: `^src/(${[room, ...others].join('|')})/` },
    })),
    ...Object.entries(faces).map(([room, modules]) => ({
      name: `face-${room}`,
      comment: `other rooms enter ${room} by ${modules.map((one) => `${one}.ts`).join(' or ')}`,
      severity: 'error',
      from: { path: '^src/', pathNot: `^src/${room}/` },
      to: { path: `^src/${room}/`, pathNot: `^src/${room}/(${modules.join('|')})\\.ts$` },
    })),
    ...Object.entries(floors).flatMap(([room, folders]) => [
      ...folders.map((folder, floor) => ({
        name: `floor-${room}-${folder}`,
        comment: `src/${room}/${folder} imports folders below it only: ${folders.slice(0, floor).join(', ') || 'none'}`,
        severity: 'error',
        from: { path: `^src/${room}/${folder}/` },
        to: {
          path: `^src/${room}/[^/]+/`,
          pathNot: `^src/${room}/(${folders.slice(0, floor + 1).join('|')})/`,
        },
      })),
      {
        name: `floor-${room}`,
        comment: `a folder of src/${room} without a place among the floors`,
        severity: 'error',
        from: { path: `^src/${room}/[^/]+/`, pathNot: `^src/${room}/(${folders.join('|')})/` },
        to: {},
      },
    ]),
    {
      name: 'own-steps',
      comment: "the kit's own steps import what a user of the package can import, and other steps",
      severity: 'error',
      from: { path: '^src/steps/[^/]+/' },
      to: { path: '^src/', pathNot: '^src/steps/([^/]+/|(step-kit|raster)\\.ts$)' },
    },
    {
      name: 'work-alone-has-gdal',
      comment: 'a declaration of a step is read by servers, which load no GDAL',
      severity: 'error',
      from: { path: '^src/steps/[^/]+/', pathNot: '/(work|cut)\\.ts$' },
      to: { path: '^src/steps/raster\\.ts$' },
    },
    {
      name: 'not-from-outside',
      comment: 'what users run imports no test and no tool of the laboratory',
      severity: 'error',
      from: { path: '^src/' },
      to: { path: '^(test|lab|scripts)/' },
    },
  ],
  options: {
    doNotFollow: { path: 'node_modules' },
    exclude: { path: '^node_modules/' },
    tsPreCompilationDeps: true,
    tsConfig: { fileName: 'tsconfig.json' },
  },
};

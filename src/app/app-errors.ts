import type { fixedBy } from '../contract/index.ts';
import { hasKey } from '../contract/keys.ts';

/** The moments of errors: a launch, a request of a page, the failure of a run, the start of the app. */
export const errorMoments = ['launch', 'request', 'run', 'start'] as const;

interface AppErrorRow {
  readonly when: (typeof errorMoments)[number];
  readonly fixedBy: (typeof fixedBy)[number];
  /** Null if it depends on the platform's answer. */
  readonly advice: string | null;
}

const launchAgain = 'Launch the app again from the marketplace and start a new run.';
const fromMarketplace = 'Go back to the marketplace and launch the app again.';
const stillGood = 'Reload this page in a moment: your launch is still good.';
const tryLater = 'Start the run again in a while. If it happens again, tell the platform the request id.';
const tryRequestLater = 'Try again in a moment.';
const later = 'Start the run again later. If it fails again, tell the operator of this app.';
const noDisk =
  'Start the run again later. If it fails again, ask the operator of this app for more disk space (WORK_DISK_BYTES).';
const changeInput = 'Correct the input or the parameters and start a new run.';
const askOperator = 'Tell the operator of this app: its configuration is wrong, or it has a bug.';
const smallerItem = 'Take a smaller item, or ask the operator of this app for a larger limit (INPUT_MAX_BYTES).';
const ofLaunch = { when: 'launch', fixedBy: 'user', advice: fromMarketplace } as const;
const ofRequest = { when: 'request', fixedBy: 'user' } as const;
const ofRun = { when: 'run', fixedBy: 'user' } as const;
const ofInput = { ...ofRun, advice: changeInput } as const;
const ofOperator = { when: 'run', fixedBy: 'operator', advice: askOperator } as const;
const ofPlatform = { when: 'run', fixedBy: 'platform', advice: tryLater } as const;
const ofDeveloper = { when: 'run', fixedBy: 'app', advice: askOperator } as const;
const ofStart = (advice: string, by: 'operator' | 'app' = 'operator') =>
  ({ when: 'start', fixedBy: by, advice }) as const;

/** Error codes of the app and its steps, with advice for their readers. A fork's steps may have further codes. docs/reference/errors.md is made from this table. */
export const appErrors = {
  // Launches.
  launch_without_token: ofLaunch,
  launch_token_malformed: ofLaunch,
  launch_already_used: ofLaunch,
  launch_refused: ofLaunch,
  app_not_accepted: { ...ofLaunch, fixedBy: 'operator', advice: 'Tell the operator of this app that the platform refuses its API key.' },
  platform_unavailable: { ...ofLaunch, fixedBy: 'platform', advice: stillGood },
  platform_slow: { ...ofLaunch, fixedBy: 'platform', advice: stillGood },
  too_many_launches: { ...ofLaunch, advice: 'Wait a minute, then launch the app again.' },

  // Requests of pages.
  no_session: { ...ofRequest, advice: fromMarketplace },
  not_found: { ...ofRequest, advice: 'Go back to the page of the launch.' },
  run_not_found: { ...ofRequest, advice: 'Go back to the page of the launch.' },
  run_not_ended: { ...ofRequest, advice: 'Wait until the run has ended.' },
  no_output: { ...ofRequest, advice: 'Wait until the run has outputs.' },
  no_result: { ...ofRequest, advice: 'Wait until the run is COMPLETED.' },
  unknown_step: { ...ofRequest, advice: 'Choose a step that the page lists.' },
  invalid_input: { ...ofRequest, advice: 'Correct the input as the message says.' },
  invalid_parameters: { ...ofRequest, advice: 'Correct the parameters as the message says.' },
  validation_failed: { ...ofRequest, fixedBy: 'app', advice: 'Correct the request as `details` says.' },
  bad_request: { ...ofRequest, fixedBy: 'app', advice: 'Correct the request.' },
  malformed_request: { ...ofRequest, fixedBy: 'app', advice: 'Send a request as HTTP/1.1 wants it.' },
  headers_too_large: { ...ofRequest, fixedBy: 'app', advice: 'Send fewer or shorter headers.' },
  request_timeout: { ...ofRequest, fixedBy: 'app', advice: 'Send the whole request in time.' },
  expectation_failed: { ...ofRequest, fixedBy: 'app', advice: 'Send no `Expect` header, or `100-continue`.' },
  unsupported_media_type: { ...ofRequest, fixedBy: 'app', advice: 'Send `application/json`.' },
  foreign_origin: { ...ofRequest, fixedBy: 'operator', advice: 'Open the app at its own address. Behind a proxy that ends TLS, the operator sets TRUST_PROXY.' },
  too_many_runs: { ...ofRequest, advice: 'Wait until some runs have ended, or end some (RUNS_PER_USER).' },
  busy: { ...ofRequest, fixedBy: 'operator', advice: 'Start the run later, or ask the operator of this app for more workers.' },
  bad_filter: { ...ofRequest, fixedBy: 'operator', advice: 'Correct the filter as the message says.' },
  admin_key_required: { ...ofRequest, fixedBy: 'operator', advice: 'Give the value of `ADMIN_KEY` as the password, with any user name.' },
  too_many_keys: { ...ofRequest, fixedBy: 'operator', advice: 'Wait a minute, then give the value of `ADMIN_KEY`.' },
  too_many_checks: { ...ofRequest, advice: tryRequestLater },
  too_many_streams: { ...ofRequest, advice: 'Close some pages of this app, then reload this one.' },
  uploads_of_another_user: { ...ofRequest, advice: 'Choose an item of your own uploads or of the catalog.' },
  shutting_down: { ...ofRequest, fixedBy: 'operator', advice: tryRequestLater },
  // Calls of executors, which are programs.
  job_over: { ...ofRequest, fixedBy: 'app', advice: 'End: nobody waits for the job.' },
  job_begun: { ...ofRequest, fixedBy: 'app', advice: 'End: another process has the job.' },
  job_secret_required: { ...ofRequest, fixedBy: 'app', advice: 'Send the token or the session of the job.' },
  job_output_under_way: { ...ofRequest, fixedBy: 'app', advice: tryRequestLater },
  job_owner_away: { ...ofRequest, fixedBy: 'app', advice: tryRequestLater },
  length_required: { ...ofRequest, fixedBy: 'app', advice: 'Send the size of the file.' },
  outputs_too_large: { ...ofRequest, fixedBy: 'app', advice: 'Send no more than the limit of the job.' },
  database_away: { ...ofRequest, fixedBy: 'operator', advice: tryRequestLater },

  // Failures of runs: the session.
  token_revoked: { ...ofRun, advice: `The platform has ended this session. ${launchAgain}` },
  token_expired: { ...ofRun, advice: `The session ended before the app could renew it. ${launchAgain}` },
  token_not_found: { ...ofRun, advice: `The platform does not know this session. ${launchAgain}` },
  token_erased: { ...ofRun, advice: `This session has ended. ${launchAgain}` },
  token_unreadable: { ...ofRun, fixedBy: 'operator', advice: launchAgain },

  // The platform.
  authentication_failed: ofOperator,
  unauthorized: ofOperator,
  permission_denied: ofOperator,
  redirect_refused: ofOperator,
  intermediary_refused: ofOperator,
  unexpected_answer: ofDeveloper,
  connection_failed: ofPlatform,
  broken_answer: ofPlatform,
  not_finished: ofPlatform,
  timeout: ofPlatform,
  unknown_error: { ...ofDeveloper, advice: null },
  internal_error: { ...ofDeveloper, advice: tryLater },
  injected_fault: { ...ofDeveloper, advice: tryLater },
  insufficient_storage: { ...ofPlatform, advice: 'The platform has no room for the output. Start the run again once it has room.' },
  model_failed: { ...ofPlatform, advice: 'Take another input, or tell the platform that its model failed.' },
  model_not_there: ofOperator,
  no_platform: ofDeveloper,

  // The data.
  asset_origin_refused: ofOperator,
  asset_too_large: { ...ofRun, advice: smallerItem },
  archive_too_large: { ...ofRun, advice: smallerItem },
  input_too_large: { ...ofRun, advice: smallerItem },
  archive_broken: { ...ofRun, advice: "The item's data is damaged: take another one, and tell the platform." },
  not_a_raster: { ...ofRun, advice: 'Take a file that GDAL reads as a raster, and start a new run.' },
  not_a_vector: { ...ofRun, advice: 'Take a file that GDAL reads as features, and start a new run.' },
  not_one_raster: { ...ofRun, advice: 'Take an item with one raster, a step that takes several, or a file of one page, and start a new run.' },
  not_one_layer: { ...ofRun, advice: 'Take a file with one layer, and start a new run.' },
  no_raster: ofInput,
  no_feature: ofInput,
  raster_names_files: { ...ofRun, advice: 'Write the file again without its metadata, and start a new run with that.' },
  raster_needs_confinement: { ...ofRun, fixedBy: 'operator', advice: 'Take a file of another format, or ask the operator of this app to let bubblewrap confine its processes (docs/deploy.md).' },
  raster_too_large: { ...ofRun, advice: 'Take a smaller raster, and start a new run.' },
  not_placed: { ...ofRun, advice: 'Place the raster first: run reproject with its parameter `from`, and start a new run with the result.' },
  band_not_found: { ...ofRun, advice: 'Choose a band that the message lists, and start a new run.' },
  band_ambiguous: { ...ofRun, advice: 'Name the band by its number or its full name, and start a new run.' },
  complex_values: { ...ofRun, advice: 'Take a raster of real numbers, such as its amplitude, and start a new run.' },
  type_not_supported: { ...ofRun, advice: 'Convert the raster to a smaller type, and start a new run.' },
  grids_differ: { ...ofRun, advice: 'Bring the bands to one grid first, by the step harmonize, and start a new run.' },
  bands_differ: { ...ofRun, advice: 'Take rasters with the same bands, and start a new run.' },
  scales_differ: { ...ofRun, advice: 'Take rasters with the same scale and offset, or bring them to one first, and start a new run.' },
  units_differ: { ...ofRun, advice: 'Convert the rasters to one unit first, and start a new run.' },
  classes_differ: { ...ofRun, advice: 'Give the rasters one table of classes first, and start a new run.' },
  classes_blended: { ...ofRun, advice: 'Choose a method that keeps the numbers of classes, such as near or mode, and start a new run.' },
  crs_not_stored: { ...ofRun, advice: 'Choose another reference system with an EPSG code, or bring the raster to one by the step reproject, and start a new run.' },
  no_date: { ...ofRun, advice: 'Take items with a date, or choose another overlap, and start a new run.' },
  no_free_value: ofInput,
  scaled_values: ofInput,
  value_out_of_range: ofInput,
  nodata_differs: { ...ofRun, advice: 'Give the bands, or the variable, one nodata value first, and start a new run.' },
  no_grid: ofInput,
  grid_implausible: ofInput,
  unknown_crs: ofInput,
  crosses_antimeridian: { ...ofRun, advice: 'Choose a reference system that holds both sides of 180 degrees in one piece, and start a new run.' },
  not_on_earth: { ...ofRun, advice: 'Take a raster and areas in one and the same reference system, and start a new run.' },
  too_many_levels: { ...ofRun, advice: 'Choose a larger interval or name the levels, and start a new run.' },
  not_reprojected: ofInput,
  area_outside: { ...ofRun, advice: 'Choose an area or a grid that the raster reaches, and start a new run.' },
  value_does_not_fit: ofInput,
  value_occurs_inside: ofInput,
  no_weight: ofInput,
  not_classes: { ...ofRun, advice: 'Take a raster of classes, and start a new run.' },
  bits_of_another: { ...ofRun, advice: 'Set the bits of the quality band, and start a new run.' },
  no_quality_band: { ...ofRun, advice: 'Choose the quality band of the scene, and start a new run.' },
  bits_of_classes: { ...ofRun, advice: 'Set `values` instead of bits, and start a new run.' },
  constant_missing: { ...ofRun, advice: 'Give the constant that the message names, as a parameter, and start a new run.' },
  reflectance_needed: { ...ofRun, advice: 'Give the factor that turns the stored numbers into reflectance, as a parameter, and start a new run.' },
  factor_missing: { ...ofRun, advice: 'Give the factor and the offset of the values, as parameters, and start a new run.' },
  too_many_classes: { ...ofRun, advice: 'Ask for no class counts, or take a raster with fewer values, and start a new run.' },
  bad_zones: { ...ofRun, advice: 'Take zones that are polygons, and start a new run.' },
  zones_outside: { ...ofRun, advice: 'Take zones that touch the raster, and start a new run.' },
  zones_not_placed: { ...ofRun, advice: 'Take zones with a reference system, and start a new run.' },
  zone_too_large: { ...ofRun, advice: 'Take smaller zones, and start a new run.' },
  unknown_field: { ...ofRun, advice: 'Choose a field that the message lists, and start a new run.' },
  values_out_of_range: { ...ofRun, advice: 'Take values in the range that the message names, and start a new run.' },
  step_refused: ofInput,
  unexpected_result: ofDeveloper,

  // The processing.
  job_timeout: { ...ofRun, advice: 'Take a smaller input, or ask the operator of this app for a longer limit (STEP_TIMEOUT_MS).' },
  job_memory_exceeded: { ...ofRun, advice: 'Take a smaller input, or ask the operator of this app for more memory (STEP_MEMORY_BYTES).' },
  job_disk_exceeded: { ...ofRun, advice: 'Take a smaller input, or ask the operator of this app for more disk (STEP_DISK_BYTES).' },
  job_processes_exceeded: { ...ofDeveloper, advice: 'Take another input, or report this one to the operator of this app.' },
  job_crashed: { ...ofRun, advice: 'The processing crashed on this input. Try another one, and report it to the operator of this app.' },
  job_output_unsafe: ofDeveloper,
  job_failed: ofInput,
  code_unreadable: { ...ofOperator, advice: 'Run the server as its own user, or make its code readable.' },
  job_not_started: { ...ofOperator, advice: later },
  disk_full: { ...ofOperator, advice: noDisk },
  work_disk_full: { ...ofOperator, advice: noDisk },
  world_away: { ...ofOperator, advice: later },
  not_confined: { ...ofOperator, advice: 'Ask the operator of this app to let bubblewrap confine its processes (docs/deploy.md).' },
  not_installed: ofOperator,
  program_not_found: ofOperator,
  no_container_engine: ofOperator,
  no_container_image: ofOperator,
  container_not_started: ofOperator,
  no_fitting_worker: { ...ofOperator, advice: 'Ask the operator of this app for a worker with what the message names (docs/scaling.md).' },
  executor_lost: { ...ofOperator, advice: later },
  executor_away: { ...ofOperator, advice: later },
  executor_stopped: { ...ofOperator, advice: later },
  executor_failed: { ...ofOperator, advice: later },
  executor_answer_damaged: { ...ofOperator, advice: later },
  executor_differs: { ...ofOperator, advice: 'Ask the operator of this app to start executors from the same release as the app (docs/executors.md).' },
  bad_model: ofDeveloper,
  step_version_gone: { ...ofRun, advice: 'Start a new run: it asks you to approve the version that the app has now.' },
  step_broke_its_declaration: ofDeveloper,
  step_defect: ofDeveloper,
  empty_output: ofDeveloper,
  output_changed: ofDeveloper,
  output_too_large: { ...ofRun, advice: 'Take a smaller input: the platform takes at most 10,000 parts.' },
  unsafe_path: ofInput,
  unsafe_path_value: ofDeveloper,
  illegal_transition: ofDeveloper,
  pool_busy: { ...ofOperator, advice: later },

  // The start of the app.
  bad_configuration: ofStart('Correct the setting that the message names (docs/configuration.md).'),
  cannot_listen: ofStart('Choose another port, or end the program that has it.'),
  data_folder_unusable: ofStart('Choose a folder that this user can write to (DATA_DIR).'),
  data_folder_in_use: ofStart('End the other app, or set another DATA_DIR.'),
  database_unavailable: ofStart('Start the database, and check DATABASE_URL.'),
  database_newer: ofStart('Start the newer version, or use a copy of the database from before the update.'),
  database_older: ofStart('Use the version that wrote it, or run `migrate` first.'),
  bad_app_definition: ofStart('Correct the app folder as the message says.', 'app'),
  bad_step_definition: ofStart('Correct the step as the message says.', 'app'),
  bad_wire_profile: ofStart('Correct the wire profile as the message says.', 'app'),
  unsafe_header_value: ofStart('Correct the wire profile as the message says.', 'app'),
  bad_index_catalogue: ofStart('Correct the files of the catalogue as the message says.', 'app'),
} as const satisfies Readonly<Record<string, AppErrorRow>>; // oxfmt-ignore

export type AppErrorCode = keyof typeof appErrors;

const sessionCodes = ['token_revoked', 'token_expired', 'token_not_found', 'token_erased', 'token_unreadable'] as const satisfies readonly AppErrorCode[]; // oxfmt-ignore

/** True if only another launch helps: the session of the failed run has ended. */
export const needsLaunch = (code: string): boolean => sessionCodes.some((sessionCode) => sessionCode === code);

/** Codes of the app's own findings. A step that reports one of them gets the general code; so with those of `ReportedJobError`. */
const ofTheApp: ReadonlySet<string> = new Set<AppErrorCode>([
  ...sessionCodes,
  'authentication_failed', 'unauthorized', 'permission_denied', 'redirect_refused', 'intermediary_refused',
  'connection_failed', 'broken_answer', 'not_finished', 'unexpected_answer', 'timeout', 'unknown_error', 'injected_fault', 'insufficient_storage',
  'model_failed', 'model_not_there', 'no_platform', 'asset_origin_refused', 'asset_too_large', 'input_too_large',
  'work_disk_full', 'world_away', 'not_confined', 'no_container_engine', 'no_container_image', 'container_not_started',
  'no_fitting_worker', 'executor_lost', 'executor_away', 'executor_stopped', 'executor_failed', 'executor_answer_damaged', 'executor_differs',
  'step_version_gone', 'step_defect', 'empty_output', 'output_changed', 'output_too_large', 'illegal_transition',
]); // oxfmt-ignore

/** The code under which a failure that a step reported is shown. Codes that only a fork's steps have are kept. */
export function reportedCode(code: string): string {
  const row = rowOf(code);
  const isOfRuns = row === undefined || row.when === 'run' || code === 'invalid_parameters' || code === 'unknown_step';
  return isOfRuns && !ofTheApp.has(code) ? code : 'job_failed';
}

const rowOf = (code: string): AppErrorRow | undefined => (hasKey(appErrors, code) ? appErrors[code] : undefined);

/** Advice for the code of the app's own answer to a launch or a page's request. Null for other codes. */
export function adviceOnPage(code: string): string | null {
  const row = rowOf(code);
  return row?.when === 'launch' || row?.when === 'request' ? row.advice : null;
}

/** Advice for the code of a failed run. `fallback` counts for other codes, such as those that only a fork's steps have. */
export function adviceOf(code: string, fallback: 'input' | 'operator' | 'platform'): string {
  const row = rowOf(code);
  const known = row?.when === 'run' ? row.advice : null;
  return known ?? { input: changeInput, operator: askOperator, platform: tryLater }[fallback];
}

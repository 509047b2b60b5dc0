import type {
  BegunUpload,
  Call,
  CallFacts,
  CallName,
  CatalogItem,
  CatalogItems,
  CompleteUploadRequest,
  FileStatusView,
  GenerateUploadIdInput,
  KnownJob,
  KnownModels,
  ProfileCalls,
  RunInferenceInput,
  SearchItemsInput,
  UploadedFile,
  UploadFileChunkInput,
  WireProfile,
} from '../contract/index.ts';
import { assumedProfile, calls, endpointsWhere, inputNames, NotFinishedError } from '../contract/index.ts';
import { listCollections, type CollectionEntry } from './browse-catalog.ts';
import { downloadTo, fetchTo, type Download } from './download.ts';
import { createHttpTransport, type HttpTransport } from './http-transport.ts';
import { TokenKeeper, type IdentityTokenStore } from './identity-token.ts';
import { PlatformError } from './platform-error.ts';
import { defaultRetryPolicy, untilFinished, withRetries, type RetryPolicy } from './retry-policy.ts';

/** The least of a logger that the client asks for. It is never given a token, a key or an address. */
export interface ClientLog {
  debug(facts: object, message: string): void;
  warn(facts: object, message: string): void;
}

/** One try of a call, for those who count. */
export interface ObservedCall {
  readonly endpoint: string;
  /** `ok`, the HTTP status that was no success, or `unanswered`. */
  readonly result: string;
  readonly durationMs: number;
}

/** Options of `createPlatformClient`: address, API key, wire profile, retries and time limits. */
export interface PlatformClientOptions {
  /** The spec's {base_url}, without a trailing slash. */
  readonly baseUrl: string;
  readonly apiKey: string;
  /** Default: the wire as the contract assumes it. */
  readonly profile?: WireProfile | undefined;
  /** Transport for the calls. The client closes it. Default: HTTP to `baseUrl`. */
  readonly transport?: HttpTransport | undefined;
  readonly retry?: Partial<RetryPolicy> | undefined;
  /** Per try, for every call but chunks and completions. Default 30,000. */
  readonly timeoutMs?: number;
  /** Per try of a chunk or a completion, after which the platform may assemble the file: how long nothing may move, be it bytes or the answer to all of them. Default 120,000. */
  readonly chunkTimeoutMs?: number;
  readonly log?: ClientLog;
  readonly onCall?: (call: ObservedCall) => void;
  /** Epoch milliseconds. Default: the machine's clock. */
  readonly now?: () => number;
}

/** Calls that are answered only after the platform has read or assembled a file. */
const longCalls = endpointsWhere(({ isLong }) => isLong === true);
/** Calls that poll. The next poll takes the place of a repeat. */
const polls = endpointsWhere(({ retries }) => retries === false);

/** Options of a call: a signal that ends it. */
export interface CallOptions {
  readonly signal?: AbortSignal | undefined;
}

/** Options of the calls of one launch. */
export interface LaunchOptions {
  /** Awaited before each try of a call; rejects where none may be made any more. Default: calls at once. */
  readonly mayCall?: (signal: AbortSignal | undefined) => Promise<void>;
}

type Rows = typeof calls;
/** Names of the calls of a launch, but for the renewal of its token. */
type LaunchCallName = {
  [Name in CallName]: Rows[Name] extends { readonly group: 'External app' } ? Name : never;
}[Exclude<CallName, 'renewToken'>];
/** The input of a call without the token, which the client adds. */
type GivenTo<Name extends LaunchCallName> =
  ProfileCalls[Name] extends Call<infer Input, unknown> ? Omit<Input, 'token'> : never;
/** The arguments of a call: none, the body alone if the input has nothing else, or the input. */
type Given<Name extends LaunchCallName> = [keyof GivenTo<Name>] extends [never]
  ? []
  : Rows[Name] extends { readonly body: infer Body extends keyof GivenTo<Name> }
    ? [Exclude<keyof GivenTo<Name>, Body>] extends [never]
      ? [body: GivenTo<Name>[Body]]
      : [input: GivenTo<Name>]
    : [input: GivenTo<Name>];

/** The calls of one launch by the names of their rows. A call whose row says that it polls makes one try only. */
type CallsOfLaunch = {
  readonly [Name in LaunchCallName]: (
    ...given: [...Given<Name>, options?: CallOptions]
  ) => Promise<ProfileCalls[Name] extends Call<never, infer Output> ? Output : never>;
};

/** The calls of one launch (spec 4.8). Each renews the token where that is due and repeats transient failures. */
export interface LaunchCalls extends CallsOfLaunch {
  /** Renews the token if it ends soon or if its end is unknown, so that it outlives long work. */
  keepAlive(options?: CallOptions): Promise<void>;
}

/** The platform's calls. `launch` returns those of one launch. */
export interface PlatformClient {
  /** The calls of the launch whose token `store` keeps. One per launch and process: renewals are shared within it. */
  launch(store: IdentityTokenStore, options?: LaunchOptions): LaunchCalls;
  /** Spec 4.5; needs the permission `files_admin`. */
  getFileStatus(fileId: string, options?: CallOptions): Promise<FileStatusView>;
  /** Spec 4.6; needs the permission `files_admin`. */
  getDownloadUrl(fileId: string, options?: CallOptions): Promise<string>;
  /** Spec 4.4, in three calls; needs the permission `files_admin` or `files_upload`. The file belongs to no launch. */
  generateUploadId(file: GenerateUploadIdInput, options?: CallOptions): Promise<BegunUpload>;
  uploadFileChunk(chunk: UploadFileChunkInput, options?: CallOptions): Promise<unknown>;
  completeFileUpload(completion: CompleteUploadRequest, options?: CallOptions): Promise<UploadedFile>;
  /** Spec 4.7, as the three that follow. */
  listModels(options?: CallOptions): Promise<KnownModels>;
  /** A repeat after a lost answer may start a second job: the spec knows no key against it. */
  runInference(input: RunInferenceInput, options?: CallOptions): Promise<KnownJob>;
  /** Makes one try only: after a lost answer the next poll asks again. */
  getInferenceStatus(inferenceId: string, options?: CallOptions): Promise<KnownJob>;
  /** Writes the result to `path`, which is unusable until it is whole. Throws `PlatformError` or `DownloadError`. */
  downloadInference(
    wanted: { readonly inferenceJobId: string } & Pick<Download, 'path' | 'maxBytes' | 'onProgress'>,
    options?: CallOptions,
  ): Promise<void>;
  /** The collections below the root catalog, by its `child` links (spec 4.1). */
  listCollections(options?: CallOptions): Promise<CollectionEntry[]>;
  /** Spec 4.1. */
  getItem(collectionId: string, itemId: string, options?: CallOptions): Promise<CatalogItem>;
  /** Spec 4.2. */
  searchItems(request: SearchItemsInput, options?: CallOptions): Promise<CatalogItems>;
  /** Fetches a temporary link to a file: without key or token, without following redirects. Throws `PlatformError` or `DownloadError`. */
  download(wanted: Download, options?: CallOptions): Promise<void>;
  close(): void;
}

/**
 * A typed client of the platform. Errors are `PlatformError`; an abort rejects with the signal's reason.
 * No redirect is followed; 4xx other than 408, 425 and 429 are never repeated, but for one renewal of an expired token.
 */
export function createPlatformClient(options: PlatformClientOptions): PlatformClient {
  const profile = options.profile ?? assumedProfile;
  const retry = { ...defaultRetryPolicy, ...options.retry };
  const timeoutMs = options.timeoutMs ?? 30_000;
  const chunkTimeoutMs = options.chunkTimeoutMs ?? 120_000;
  const now = options.now ?? Date.now;
  const patience = { pauseMs: profile.limits.pollIntervalMs.min, maxPauseMs: retry.maxRetryAfterMs };
  const transport =
    options.transport ?? createHttpTransport({ baseUrl: options.baseUrl, apiKey: options.apiKey, profile });

  function send<Input, Output>(
    call: Call<Input, Output>,
    input: Input,
    signal: AbortSignal | undefined,
    secrets: string[],
  ) {
    const attempt = () => sendOnce(call, input, signal, secrets);
    return polls.has(call.endpoint)
      ? attempt()
      : untilFinished(call.endpoint, () => repeat(attempt, signal), { ...patience, signal });
  }

  function sendOnce<Input, Output>(
    call: Call<Input, Output>,
    input: Input,
    signal: AbortSignal | undefined,
    secrets: string[],
  ) {
    const timeout = longCalls.has(call.endpoint) ? chunkTimeoutMs : timeoutMs;
    return observed(call.endpoint, signal, () => transport.send(call, input, { signal, timeoutMs: timeout, secrets }));
  }

  /** One try, told to whoever counts. */
  async function observed<T>(endpoint: string, signal: AbortSignal | undefined, attempt: () => Promise<T>): Promise<T> {
    const from = performance.now();
    const observe = (result: string) => options.onCall?.({ endpoint, result, durationMs: performance.now() - from });
    try {
      const answer = await attempt();
      observe('ok');
      return answer;
    } catch (error) {
      if (!signal?.aborted) observe(resultOf(error));
      throw error;
    }
  }

  function repeat<T>(attempt: () => Promise<T>, signal: AbortSignal | undefined): Promise<T> {
    return withRetries(attempt, retry, signal, (error, attemptNumber) =>
      options.log?.warn(describe(error, { attemptNumber }), 'platform call failed, repeating it'),
    );
  }

  function launch(store: IdentityTokenStore, { mayCall = async () => {} }: LaunchOptions = {}): LaunchCalls {
    const keeper = new TokenKeeper(
      store,
      async (token, { isPatient }) => {
        const ask = isPatient ? send : sendOnce;
        const renewed = await ask(profile.calls.renewToken, { token }, undefined, [token]);
        options.log?.debug(
          { endpoint: profile.calls.renewToken.endpoint, rotated: renewed.token !== token },
          'identity token renewed',
        );
        return renewed;
      },
      { now, tokenLifetimeMs: profile.limits.tokenLifetimeMs },
    );

    const call = <Input extends { token: string }, Output>(
      wire: Call<Input, Output>,
      input: Omit<Input, 'token'>,
      { signal }: CallOptions = {},
    ): Promise<Output> => {
      const isPatient = !polls.has(wire.endpoint);
      // TypeScript does not put a type parameter together again from `Omit` and the field left out.
      const use = () =>
        keeper.use((token) => sendOnce(wire, { ...input, token } as Input, signal, [token]), {
          repeat: (attempt) => (isPatient ? repeat(attempt, signal) : attempt()),
          before: mayCall,
          ...{ isPatient, signal },
        });
      return isPatient ? untilFinished(wire.endpoint, use, { ...patience, signal }) : use();
    };

    const methods = Object.entries<CallFacts & { readonly body?: string }>(calls)
      .filter(([name, { group }]) => group === 'External app' && name !== 'renewToken')
      .map(([name, row]) => {
        const names = inputNames(row);
        const [alone] = names.length === 1 ? names : [];
        const method = (...given: readonly unknown[]) => {
          const [input, options] = names.length === 0 ? [{}, given[0]] : given;
          const wire = profile.calls[name as LaunchCallName] as Call<{ token: string }, unknown>;
          return call(
            wire,
            alone !== undefined && alone === row.body ? { [alone]: input } : (input as object),
            options as CallOptions | undefined,
          );
        };
        return [name, method];
      });

    return {
      keepAlive: ({ signal } = {}) => keeper.keepAlive(signal),
      // Each method has the arguments and the answer of its row.
      ...(Object.fromEntries(methods) as unknown as CallsOfLaunch),
    };
  }

  return {
    launch,
    getFileStatus: (fileId, o) => send(profile.calls.getFileStatus, { fileId }, o?.signal, []),
    getDownloadUrl: (fileId, o) => send(profile.calls.getDownloadUrl, { fileId }, o?.signal, []),
    generateUploadId: (file, o) => send(profile.calls.generateUploadId, file, o?.signal, []),
    uploadFileChunk: (chunk, o) => send(profile.calls.uploadFileChunk, chunk, o?.signal, []),
    completeFileUpload: (completion, o) => send(profile.calls.completeFileUpload, { completion }, o?.signal, []),
    listModels: (o) => send(profile.calls.listModels, {}, o?.signal, []),
    runInference: (input, o) => send(profile.calls.runInference, input, o?.signal, []),
    getInferenceStatus: (inferenceId, o) => send(profile.calls.getInferenceStatus, { inferenceId }, o?.signal, []),
    async downloadInference({ inferenceJobId, ...wanted }, o) {
      const { endpoint } = profile.calls.downloadInference;
      const { method, path, query, headers } = profile.calls.downloadInference.encode({ inferenceJobId });
      const url = new URL(`${options.baseUrl}${path}`);
      for (const [name, value] of Object.entries(query ?? {})) url.searchParams.set(name, value);
      const file = {
        ...wanted,
        url,
        endpoint,
        method,
        headers: { ...profile.authenticate(options.apiKey), ...headers },
      };
      await repeat(() => observed(endpoint, o?.signal, () => fetchTo(file, o?.signal)), o?.signal);
    },
    listCollections: (o) =>
      listCollections({
        getCatalog: (catalogId) => send(profile.calls.getCatalog, { catalogId }, o?.signal, []),
        getCollection: (collectionId) => send(profile.calls.getCollection, { collectionId }, o?.signal, []),
      }),
    async getItem(collectionId, itemId, o) {
      const input = { collectionId, itemId };
      const item = await send(profile.calls.getItem, input, o?.signal, []);
      return withWholeLink(item, `${options.baseUrl}${profile.calls.getItem.encode(input).path}`);
    },
    searchItems: (request, o) => send(profile.calls.searchItems, request, o?.signal, []),
    download: (wanted, o) =>
      repeat(() => observed('stac.data', o?.signal, () => downloadTo(wanted, o?.signal)), o?.signal),
    close: () => transport.close(),
  };
}

/** Result of a failed try, as `ObservedCall` has it. */
function resultOf(error: unknown): string {
  const isAnswered = error instanceof PlatformError || error instanceof NotFinishedError;
  return isAnswered && error.platformStatus !== null ? String(error.platformStatus) : 'unanswered';
}

/** A relative link starts from the item (RFC 3986, 5.1), whose address is `base`. */
function withWholeLink(item: CatalogItem, base: string): CatalogItem {
  const { dataHref } = item;
  if (dataHref === undefined || URL.canParse(dataHref) || !URL.canParse(dataHref, base)) return item;
  return { ...item, dataHref: new URL(dataHref, base).href };
}

function describe(error: PlatformError, more: object): object {
  return {
    endpoint: error.endpoint,
    code: error.code,
    status: error.platformStatus,
    requestId: error.requestId,
    ...more,
  };
}

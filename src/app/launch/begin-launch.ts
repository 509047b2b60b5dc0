import { randomBytes } from 'node:crypto';
import { isPathSegment, KitError } from '../../contract/index.ts';
import {
  PlatformError,
  type IdentityToken,
  type IdentityTokenStore,
  type PlatformClient,
} from '../../platform-client/index.ts';
import type { AppErrorCode } from '../app-errors.ts';
import type { Launch, LaunchStore } from './launch-store.ts';

function refusal(status: number, code: AppErrorCode, message: string): KitError {
  return new KitError(code, message, { status, data: { isForUser: true } });
}

/** A token as it may come: one non-empty URL-safe word of sane length. */
export function readLaunchToken(value: unknown): string {
  if (value === undefined || value === '')
    throw refusal(400, 'launch_without_token', 'This address begins a launch, but it carries no identity token.');
  if (typeof value !== 'string' || !/^[\x21-\x7e]{1,4096}$/.test(value) || !isPathSegment(value)) {
    throw refusal(400, 'launch_token_malformed', 'This address begins a launch, but its identity token is malformed.');
  }
  return value;
}

/**
 * Begins a launch with a fresh identity token: asks the platform who the user is, then keeps the token
 * sealed. A token begins one session only, so a second use is refused. The token stays unused if the platform
 * does not answer, or if the browser has closed the connection meanwhile. Returns null in the second case.
 */
export async function beginLaunch(
  token: string,
  client: PlatformClient,
  launches: LaunchStore,
  now: () => number,
  isAskerGone: () => boolean,
  signal: AbortSignal,
): Promise<Launch | null> {
  const used = () =>
    refusal(
      403,
      'launch_already_used',
      'A browser has opened this launch already. Each launch begins one session, in one browser.',
    );
  if ((await launches.begunBy(token)) !== null) throw used();
  const held = memoryStore({ token, expiresAtMs: null });
  const user = await client.launch(held).userDetail({ signal }).catch(explain);
  // The session's cookie would reach nobody.
  if (isAskerGone()) return null;
  const launch: Launch = { id: randomBytes(16).toString('base64url'), user, createdAtMs: now() };
  if (!(await launches.begin(launch, token, await held.read()))) throw used();
  return launch;
}

function memoryStore(first: IdentityToken): IdentityTokenStore {
  let held = first;
  return {
    read: () => Promise.resolve(held),
    write: (token) => {
      held = token;
      return Promise.resolve();
    },
  };
}

/** A wire profile may not know the platform's words for errors. Then the status decides. */
function codeOf({ code, platformStatus, isTransient }: PlatformError): PlatformError['code'] {
  if (code !== 'unknown_error' || isTransient) return code;
  return platformStatus === 401 ? 'unauthorized' : 'token_not_found';
}

function explain(error: unknown): never {
  if (error instanceof KitError && error.code === 'platform_slow' && error.cause instanceof PlatformError) {
    const { platformStatus } = error.cause;
    if (platformStatus !== null)
      throw refusal(
        502,
        'platform_slow',
        `The app asked the platform several times who you are, and the platform answered ${platformStatus} each time${platformStatus === 429 ? ': it is busy' : ''}. Try again later.`,
      );
  }
  if (error instanceof KitError && error.code === 'platform_slow')
    throw refusal(502, 'platform_slow', `The app could not ask the platform who you are: ${error.message}.`);
  if (!(error instanceof PlatformError)) throw error;
  const facts = [
    error.code,
    `status ${error.platformStatus ?? 'none'}`,
    ...(error.requestId ? [`request ${error.requestId}`] : []),
  ].join(', ');
  switch (codeOf(error)) {
    case 'token_not_found':
    case 'token_expired':
    case 'token_revoked':
      throw refusal(403, 'launch_refused', `The platform does not accept this launch (${facts}).`);
    case 'unauthorized':
    case 'authentication_failed':
    case 'permission_denied':
      throw refusal(502, 'app_not_accepted', `The platform does not accept this app (${facts}).`);
    default:
      throw refusal(502, 'platform_unavailable', `The app could not ask the platform who you are (${facts}).`);
  }
}

import { createHash } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import type * as z from 'zod';
import { KitError, type AppManifest } from '../contract/index.ts';
import type { controlAnswers } from '../sandbox/control/answers.ts';
import type { Permission } from '../sandbox/identity/permissions.ts';
import type { newFault } from '../sandbox/call/fault.ts';
import { sandboxCall, type SandboxAddress } from './sandbox-call.ts';

type Answers = { readonly [Name in keyof typeof controlAnswers]: z.output<(typeof controlAnswers)[Name]> };
/** An operation that the sandbox holds. */
export type SandboxOperation = Answers['operation'];
/** A launch that the sandbox has made. */
export type SandboxLaunch = Answers['newLaunch'];
/** The verdict of the referee on a launch. */
export type SandboxVerdict = Answers['verdict'];
/** A permission of an API key (spec 5). */
export type SandboxPermission = Permission;
/** A call of the sandbox's trace. */
export type SandboxCall = Answers['trace']['calls'][number];
/** A fault to arm. `docs/rehearse-faults.md` lists its effects. */
export type SandboxFault = z.input<typeof newFault>;

/** An operation by its id, or the one that a launch's app asks for: that is waited for. */
export type WhichOperation = string | { readonly launchId: string; readonly timeoutMs?: number };

/** Wishes for a new launch: app, user, renewal policy and launch mode. */
export interface LaunchWish {
  /** Id of one of the marketplace's users. Default: the first user. */
  readonly userId?: string;
  /** Result of a renewal: the same token with more time (default), or another token. */
  readonly renewPolicy?: 'extend' | 'rotate';
  /** Way in which the token reaches the app. Default: `query`. */
  readonly launchMode?: AppManifest['launchMode'];
  /** Description of the app in the marketplace. Default: one for each address and way of launching. */
  readonly app?: Pick<AppManifest, 'id' | 'name'> & Partial<Pick<AppManifest, 'description' | 'icon'>>;
}

/** A sandbox's control calls, typed (docs/sandbox.md). Each throws `KitError` where the sandbox refuses it. */
export interface SandboxControl {
  /** Launches the app at this address, as the marketplace does: opened in a browser, `launchUrl` begins the session. */
  launch(appLaunchUrl: string, wish?: LaunchWish): Promise<SandboxLaunch>;
  /** The user's decision. */
  approve(which: WhichOperation): Promise<SandboxOperation>;
  reject(which: WhichOperation): Promise<SandboxOperation>;
  /** Newest first. */
  operations(): Promise<SandboxOperation[]>;
  /** The operation that a launch's app asks for, as soon as it does. Throws after `timeoutMs`, default 30,000. */
  nextOperation(launchId: string, timeoutMs?: number): Promise<SandboxOperation>;
  /** Moves the platform's clock: of one launch, or of everything. */
  advance(advanceMs: number, launchId?: string): Promise<void>;
  /** Makes calls fail as said (docs/rehearse-faults.md). */
  arm(fault: SandboxFault): Promise<void>;
  /** Verdict of the referee on a launch so far, rule by rule. */
  verdict(launchId: string): Promise<SandboxVerdict>;
  /** Every call that a launch's app has made, oldest first. */
  trace(launchId: string): Promise<SandboxCall[]>;
  /** Makes an API key with these permissions; it is shown only now. */
  createKey(permissions: readonly SandboxPermission[]): Promise<{ readonly id: string; readonly apiKey: string }>;
  /** Calls with the key are answered with 401 from now on. */
  revokeKey(keyId: string): Promise<void>;
  /** Ends a launch: its token is refused from now on. */
  revoke(launchId: string): Promise<void>;
  /** Back to the seeded state. */
  reset(): Promise<void>;
}

const lookEveryMs = 100;

/** Registered once for each address and way of launching, and launched often. */
function anApp(url: string, mode: string) {
  const id = `at-${createHash('sha256').update(`${mode} ${url}`).digest('hex').slice(0, 40)}`;
  return { id, name: 'App under test' };
}

export function sandboxControl(sandbox: SandboxAddress): SandboxControl {
  const call = <Name extends keyof Answers>(path: string, body?: object) =>
    sandboxCall<Answers[Name]>(sandbox, path, body);
  const operations = async () => (await call<'operations'>('operations')).operations;
  async function nextOperation(launchId: string, timeoutMs = 30_000): Promise<SandboxOperation> {
    const giveUpAt = performance.now() + timeoutMs;
    for (;;) {
      const { operations: asked } = await call<'launch'>(`launches/${launchId}`);
      const waiting = asked.find(({ status }) => status === 'REQUESTED');
      if (waiting) return waiting;
      if (performance.now() > giveUpAt)
        throw new KitError(
          'no_operation',
          `the app of launch ${launchId} asked for no operation within ${timeoutMs} ms`,
        );
      await sleep(lookEveryMs);
    }
  }
  async function decide(which: WhichOperation, decision: 'approve' | 'reject'): Promise<SandboxOperation> {
    const id = typeof which === 'string' ? which : (await nextOperation(which.launchId, which.timeoutMs)).operationId;
    return call<'operation'>(`operations/${id}/${decision}`, {});
  }

  return {
    async launch(launchUrl, { userId, renewPolicy, launchMode = 'query', app = anApp(launchUrl, launchMode) } = {}) {
      await call<'app'>('apps', { ...app, launchUrl, launchMode });
      return call<'newLaunch'>('launches', { appId: app.id, userId, renewPolicy });
    },
    approve: (which) => decide(which, 'approve'),
    reject: (which) => decide(which, 'reject'),
    operations,
    nextOperation,
    advance: async (advanceMs, launchId) => void (await call<'clock'>('clock', { advanceMs, launchId })),
    arm: async (fault) => void (await call<'fault'>('faults', fault)),
    verdict: (launchId) => call<'verdict'>(`launches/${launchId}/verdict`),
    trace: async (launchId) => (await call<'trace'>(`launches/${launchId}/trace`)).calls,
    createKey: (permissions) => call<'newKey'>('keys', { permissions }),
    revokeKey: async (keyId) => void (await sandboxCall(sandbox, `keys/${keyId}`, undefined, 'DELETE')),
    revoke: async (launchId) => void (await sandboxCall(sandbox, `launches/${launchId}/revoke`, {})),
    reset: async () => void (await sandboxCall(sandbox, 'reset', {})),
  };
}

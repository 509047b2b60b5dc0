import { createHash } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import type * as z from 'zod';
import { KitError, type AppManifest, type Permission } from '../contract/index.ts';
import type { newFault } from '../sandbox/call/fault.ts';
import { sandboxCall, type SandboxAddress, type SandboxAnswer } from './sandbox-call.ts';

/** An operation that the sandbox holds. */
export type SandboxOperation = SandboxAnswer<'approveOperation'>;
/** A launch that the sandbox has made. */
export type SandboxLaunch = SandboxAnswer<'launch'>;
/** The verdict of the referee on a launch. */
export type SandboxVerdict = SandboxAnswer<'getVerdict'>;
/** A permission of an API key (spec 5). */
export type SandboxPermission = Permission;
/** A call of the sandbox's trace. */
export type SandboxCall = SandboxAnswer<'getTrace'>['calls'][number];
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
  const operations = async () => (await sandboxCall(sandbox, 'listOperations', {})).operations;
  async function nextOperation(launchId: string, timeoutMs = 30_000): Promise<SandboxOperation> {
    const giveUpAt = performance.now() + timeoutMs;
    for (;;) {
      const { operations: asked } = await sandboxCall(sandbox, 'getLaunch', { launchId });
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
  async function decide(
    which: WhichOperation,
    decision: 'approveOperation' | 'rejectOperation',
  ): Promise<SandboxOperation> {
    const operationId =
      typeof which === 'string' ? which : (await nextOperation(which.launchId, which.timeoutMs)).operationId;
    return sandboxCall(sandbox, decision, { operationId });
  }

  return {
    async launch(launchUrl, { userId, renewPolicy, launchMode = 'query', app = anApp(launchUrl, launchMode) } = {}) {
      await sandboxCall(sandbox, 'registerApp', { body: { ...app, launchUrl, launchMode } });
      return sandboxCall(sandbox, 'launch', { body: { appId: app.id, userId, renewPolicy } });
    },
    approve: (which) => decide(which, 'approveOperation'),
    reject: (which) => decide(which, 'rejectOperation'),
    operations,
    nextOperation,
    advance: async (advanceMs, launchId) =>
      void (await sandboxCall(sandbox, 'moveClock', { body: { advanceMs, launchId } })),
    arm: async (fault) => void (await sandboxCall(sandbox, 'armFault', { body: fault })),
    verdict: (launchId) => sandboxCall(sandbox, 'getVerdict', { launchId }),
    trace: async (launchId) => (await sandboxCall(sandbox, 'getTrace', { launchId })).calls,
    createKey: (permissions) => sandboxCall(sandbox, 'createKey', { body: { permissions: [...permissions] } }),
    revokeKey: (id) => sandboxCall(sandbox, 'revokeKey', { id }),
    revoke: (launchId) => sandboxCall(sandbox, 'revokeLaunch', { launchId }),
    reset: async () => void (await sandboxCall(sandbox, 'reset', {})),
  };
}

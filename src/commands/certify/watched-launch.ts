import { setTimeout as sleep } from 'node:timers/promises';
import type * as z from 'zod';
import { KitError, type OperationStatus } from '../../contract/index.ts';
import type { controlAnswers } from '../../sandbox/control/answers.ts';
import { faultText, type newFault } from '../../sandbox/call/fault.ts';
import { spanText } from '../../sandbox/marketplace/launch-events.ts';
import { sandboxCall, type SandboxAddress } from '../../testing/sandbox-call.ts';

export type TracedCall = z.output<typeof controlAnswers.trace>['calls'][number];
export type LaunchVerdict = z.output<typeof controlAnswers.verdict>;
type LaunchView = z.output<typeof controlAnswers.launch>;
export type ArmedFault = z.output<typeof controlAnswers.faults>['faults'][number];
export type FaultEffect = z.output<typeof newFault>['effect'];
export type FaultEndpoint = z.output<typeof newFault>['endpoint'];

/** An event that a scenario waited for did not come. */
export class NotSeen extends Error {}

const lookEveryMs = 250;

/** An action of the plan itself on a launch. */
export interface PlanAct {
  /** ISO 8601. */
  readonly at: string;
  readonly kind: string;
  readonly text: string;
}

/** One launch of the app under test, as its scenario drives and watches it. Every wait ends with `NotSeen` after the patience. */
export class WatchedLaunch {
  readonly id: string;
  readonly acts: PlanAct[] = [];
  /** Faults that the plan armed, with the ids that the sandbox returned. */
  readonly armed: ArmedFault[] = [];
  #sandbox: SandboxAddress;
  #patienceMs: number;
  #signal: AbortSignal;

  constructor(id: string, options: { sandbox: SandboxAddress; patienceMs: number; signal: AbortSignal }) {
    this.id = id;
    this.#sandbox = options.sandbox;
    this.#patienceMs = options.patienceMs;
    this.#signal = options.signal;
  }

  /** The operation that the app has created. */
  async operation(): Promise<string> {
    const { operations } = await this.#until(
      'the app created no operation',
      () => this.#view(),
      ({ operations }) => operations.length > 0,
    );
    return operations.at(-1)?.operationId ?? '';
  }

  /** Until so many more status calls were answered. */
  async polls(count: number): Promise<void> {
    const answered = (calls: readonly TracedCall[]) =>
      calls.filter(({ endpoint, delivered, status }) => endpoint === 'operation.status' && delivered && status === 200)
        .length;
    const before = answered(await this.calls());
    await this.#until(
      `the app asked for the status fewer than ${count} times more`,
      () => this.calls(),
      (calls) => answered(calls) >= before + count,
    );
  }

  async approve(): Promise<void> {
    await this.#act('approved', 'by the plan', `operations/${await this.operation()}/approve`);
  }

  async reject(): Promise<void> {
    await this.#act('rejected', 'by the plan', `operations/${await this.operation()}/reject`);
  }

  /** True where the platform refused, as it should by then. */
  async isApprovalRefused(): Promise<boolean> {
    return this.approve().then(
      () => false,
      (error: unknown) => {
        if (error instanceof KitError && error.status === 409) return true;
        throw error;
      },
    );
  }

  async advance(advanceMs: number): Promise<void> {
    await this.#act('clock moved', `by ${spanText(advanceMs)}`, 'clock', { advanceMs, launchId: this.id });
  }

  async revoke(): Promise<void> {
    await this.#act('revoked', 'the token', `launches/${this.id}/revoke`);
  }

  async arm(endpoint: FaultEndpoint, effect: FaultEffect, { after = 0, times = 1 } = {}): Promise<void> {
    const fault = { launchId: this.id, endpoint, effect, after, times };
    this.armed.push(await this.#act<ArmedFault>('fault armed', `${endpoint}: ${faultText(effect)}`, 'faults', fault));
  }

  /** Until a status answer has told the app the decision. */
  async told(status: OperationStatus): Promise<void> {
    await this.#until(
      `the app did not ask until it was told ${status}`,
      () => this.calls(),
      (calls) =>
        calls.some(
          (call) => call.endpoint === 'operation.status' && call.delivered && call.detail['operationStatus'] === status,
        ),
    );
  }

  /** Until the upload is completed, and the app knows: its last complete call was answered. */
  async delivered(): Promise<void> {
    await this.#until(
      'the app delivered no file',
      () => this.calls(),
      (calls) =>
        calls.some(({ endpoint, delivered, status }) => endpoint === 'upload.complete' && delivered && status === 200),
    );
  }

  /** Throws `NotSeen` where the app went on after it was told that its token is revoked. */
  async refusedAtMost(count: number): Promise<void> {
    const refused = (await this.calls()).filter(({ detail }) => detail['code'] === 'token_revoked').length;
    if (refused > count) throw new NotSeen(`the app called ${refused} times with a revoked token`);
  }

  /** Throws `NotSeen` where the referee warns of this, or had nothing to see of it. */
  async obeyed(advisory: 'no-data-before-approval' | 'retry-after'): Promise<void> {
    const { advisories } = await this.verdict();
    const told = advisories.find(({ rule }) => rule === advisory);
    if (told?.result === 'passed') return;
    const [violation] = told?.violations ?? [];
    throw new NotSeen(
      violation ? `${violation.seen}; expected: ${violation.expected}` : `the app did not come again after ${advisory}`,
    );
  }

  /** Watches that what must not come does not come. */
  async watch(ms: number): Promise<void> {
    await sleep(ms, undefined, { signal: this.#signal });
  }

  async calls(): Promise<TracedCall[]> {
    return (await this.trace()).calls;
  }

  /** The newest calls, and the number of all that the sandbox has. */
  async trace(): Promise<z.output<typeof controlAnswers.trace>> {
    return sandboxCall(this.#sandbox, `launches/${this.id}/trace`);
  }

  async verdict(): Promise<LaunchVerdict> {
    return sandboxCall(this.#sandbox, `launches/${this.id}/verdict`);
  }

  async #view(): Promise<LaunchView> {
    return sandboxCall(this.#sandbox, `launches/${this.id}`);
  }

  async #act<T>(kind: string, text: string, path: string, body: object = {}): Promise<T> {
    const at = new Date().toISOString();
    const answer = await sandboxCall<T>(this.#sandbox, path, body);
    this.acts.push({ at, kind, text });
    return answer;
  }

  async #until<T>(what: string, look: () => Promise<T>, isThere: (seen: T) => boolean): Promise<T> {
    const giveUpAt = performance.now() + this.#patienceMs;
    for (;;) {
      const seen = await look();
      if (isThere(seen)) return seen;
      if (performance.now() >= giveUpAt) throw new NotSeen(`${what} within ${this.#patienceMs / 1000} s`);
      await sleep(lookEveryMs, undefined, { signal: this.#signal });
    }
  }
}

import { setTimeout as sleep } from 'node:timers/promises';
import type * as z from 'zod';
import { KitError, type OperationStatus } from '../../contract/index.ts';
import { faultText, type newFault } from '../../sandbox/call/fault.ts';
import { spanText } from '../../sandbox/marketplace/launch-events.ts';
import { isComplete } from '../../sandbox/referee/traced-call.ts';
import type { AppUnderTest } from './app-under-test.ts';
import { isBusy, loadText, type MachineLoad } from './machine.ts';
import { sandboxCall, type SandboxAddress, type SandboxAnswer } from '../../testing/sandbox-call.ts';

export type TracedCall = SandboxAnswer<'getTrace'>['calls'][number];
export type LaunchVerdict = SandboxAnswer<'getVerdict'>;
export type ArmedFault = SandboxAnswer<'armFault'>;
export type FaultEffect = z.output<typeof newFault>['effect'];
export type FaultEndpoint = z.output<typeof newFault>['endpoint'];

/** An event that a scenario waited for did not come. */
export class NotSeen extends Error {}

/** An event did not come while this machine was too busy for a right app, so it says nothing about the app. */
export class MachineTooBusy extends Error {}

/** The longest wait for an event on a busy machine, as a multiple of the patience. */
const longestWait = 10;

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
  #machine: Pick<MachineLoad, 'slowdown'>;
  #app: Pick<AppUnderTest, 'endedWith'>;
  #signal: AbortSignal;

  constructor(
    id: string,
    options: {
      sandbox: SandboxAddress;
      patienceMs: number;
      machine: Pick<MachineLoad, 'slowdown'>;
      app: Pick<AppUnderTest, 'endedWith'>;
      signal: AbortSignal;
    },
  ) {
    this.id = id;
    this.#sandbox = options.sandbox;
    this.#patienceMs = options.patienceMs;
    this.#machine = options.machine;
    this.#app = options.app;
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
    const operationId = await this.operation();
    await this.#act('approved', 'by the plan', () => sandboxCall(this.#sandbox, 'approveOperation', { operationId }));
  }

  async reject(): Promise<void> {
    const operationId = await this.operation();
    await this.#act('rejected', 'by the plan', () => sandboxCall(this.#sandbox, 'rejectOperation', { operationId }));
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
    const body = { advanceMs, launchId: this.id };
    await this.#act('clock moved', `by ${spanText(advanceMs)}`, () =>
      sandboxCall(this.#sandbox, 'moveClock', { body }),
    );
  }

  async revoke(): Promise<void> {
    await this.#act('revoked', 'the token', () => sandboxCall(this.#sandbox, 'revokeLaunch', { launchId: this.id }));
  }

  async arm(endpoint: FaultEndpoint, effect: FaultEffect, { after = 0, times = 1 } = {}): Promise<void> {
    const body = { launchId: this.id, endpoint, effect, after, times };
    this.armed.push(
      await this.#act('fault armed', `${endpoint}: ${faultText(effect)}`, () =>
        sandboxCall(this.#sandbox, 'armFault', { body }),
      ),
    );
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
      (calls) => calls.some((call) => isComplete(call) && call.delivered && call.status === 200),
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
  trace(): Promise<SandboxAnswer<'getTrace'>> {
    return sandboxCall(this.#sandbox, 'getTrace', { launchId: this.id });
  }

  verdict(): Promise<LaunchVerdict> {
    return sandboxCall(this.#sandbox, 'getVerdict', { launchId: this.id });
  }

  #view(): Promise<SandboxAnswer<'getLaunch'>> {
    return sandboxCall(this.#sandbox, 'getLaunch', { launchId: this.id });
  }

  async #act<T>(kind: string, text: string, call: () => Promise<T>): Promise<T> {
    const at = new Date().toISOString();
    const answer = await call();
    this.acts.push({ at, kind, text });
    return answer;
  }

  /** Waits for an event. On a busy machine a second counts as the part of it that a program gets. */
  async #until<T>(what: string, look: () => Promise<T>, isThere: (seen: T) => boolean): Promise<T> {
    const beganAt = performance.now();
    let waitedMs = 0;
    for (let lookedAt = beganAt; ;) {
      const seen = await look();
      if (isThere(seen)) return seen;
      if (this.#app.endedWith !== null)
        throw new NotSeen(`${what}: the app ended (${this.#app.endedWith})${await this.#lastCall()}`);
      const passedMs = performance.now() - beganAt;
      if (waitedMs >= this.#patienceMs || passedMs >= longestWait * this.#patienceMs) {
        const missing = `${what} within ${Math.round(passedMs / 1_000)} s${await this.#lastCall()}`;
        const meanLoad = { slowdown: passedMs / Math.max(1, waitedMs) };
        throw isBusy(meanLoad)
          ? new MachineTooBusy(
              `${missing}. This proves nothing, because the machine was too busy: ${loadText(meanLoad)}`,
            )
          : new NotSeen(missing);
      }
      await sleep(lookEveryMs, undefined, { signal: this.#signal });
      const now = performance.now();
      waitedMs += (now - lookedAt) / this.#machine.slowdown;
      lookedAt = now;
    }
  }

  /** The last call of the app and its answer, in words. */
  async #lastCall(): Promise<string> {
    const calls = await this.calls();
    const last = calls.at(-1);
    if (!last) return '; it made no call after the launch';
    const answer =
      last.status === null
        ? 'which got no answer'
        : `answered with ${last.status}${last.delivered ? '' : ', which did not arrive'}`;
    const ofLaunch = calls.filter(({ detail }) => detail['foreign'] === undefined);
    const operations = new Set(ofLaunch.flatMap(({ detail }) => detail['operationId'] ?? []));
    const several =
      operations.size > 1 ? `; it has ${operations.size} operations, and the plan approves or rejects the last` : '';
    const isOpen = calls.some(({ endpoint }) => endpoint === 'upload.chunk') && !calls.some(isComplete);
    return `; its last call was ${last.endpoint}, ${answer}${isOpen ? ', and it did not complete its upload' : ''}${several}`;
  }
}

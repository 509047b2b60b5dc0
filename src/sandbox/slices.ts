import type { RequestHandler } from 'express';
import type { Logger } from 'pino';
import type { WireProfile } from '../contract/index.ts';
import type { Confinement } from '../child/index.ts';
import type { SandboxClock } from './clock.ts';
import type { SandboxConfig } from './config.ts';
import type { SandboxDatabase } from './database.ts';
import type { Signer } from './secrets.ts';

/** The services that every slice uses. */
export interface Services {
  readonly config: SandboxConfig;
  readonly log: Logger;
  readonly database: SandboxDatabase;
  readonly clock: SandboxClock;
  readonly signer: Signer;
  readonly confinement: Confinement;
  readonly profile: WireProfile;
  readonly folders: Folders;
  /** Address of the sandbox, without a slash at the end. */
  readonly publicUrl: () => string;
  /** Epoch milliseconds of the machine. */
  readonly machineNow: () => number;
  /** Free bytes under a folder. Default: the system's. */
  readonly freeBytes?: ((folder: string) => Promise<number>) | undefined;
}

/** Folders below the data folder. */
export interface Folders {
  /** Bytes of uploads and files. */
  readonly blobDir: string;
  /** Overviews of uploaded rasters, `<blob>.ovr`. */
  readonly overviewDir: string;
  /** Results of models. */
  readonly resultDir: string;
  /** Scenes that were uploaded in the pages. */
  readonly uploadedScenes: string;
  /** Temporary files. Emptied at each start. */
  readonly workDir: string;
}

/** Topics of pages, each with tables that it shows. */
export type Topics = readonly (readonly [topic: string, tables: readonly string[]])[];

/**
 * A part of the platform. `Stores` are for other slices and for routes; `Needs` is what its routes take.
 * Slices start in the order in which they open. They forget and close in reverse order.
 */
export interface Slice<Stores extends object = object, Needs = object> {
  readonly stores: Stores;
  /** Tables that its pages show, by topic. A page reloads if a table of its topics changes. */
  readonly topics?: Topics;
  /** Returns its routes. */
  readonly routes?: (needs: Needs) => RequestHandler;
  /** Prepares data and starts background work. */
  start?(): Promise<void> | void;
  /** Stops background work until `resume`. */
  pause?(): Promise<unknown>;
  resume?(): Promise<void>;
  /** Deletes what belongs to launches. Runs in the transaction of a reset. */
  forget?(): void;
  /** Folders that a reset deletes. They are deleted first if the disk is full. */
  readonly results?: readonly string[];
  /** Runs after the transaction of a reset. */
  afterForget?(): Promise<void> | void;
  /** Does what the clock has made due. */
  sweep?(): Promise<void>;
  close?(): Promise<void> | void;
}

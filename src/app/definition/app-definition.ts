import type { UserDetail, WireProfile } from '../../contract/index.ts';
import type { AnyStep } from '../../steps/step.ts';

/** A page of the app's own, at `/launches/{launchId}/pages/{path}`, with a link in the header of every page. */
export interface AppPage {
  /** `[a-z][a-z0-9-]*`, unique. */
  readonly path: string;
  readonly title: string;
  /** Name of a template in the app's own folder, without `.eta`. */
  readonly template: string;
  /** Returns data that the template reads from `it`, in addition to `it.user`. Default: no data. */
  readonly data?: (context: { readonly user: UserDetail }) => object | Promise<object>;
}

/** The definition of an app: everything that the kit asks of a fork. */
export interface AppDefinition {
  /** `import.meta.url` of the module that exports it as default: child processes load the steps from there. */
  readonly module: string;
  /** `[a-z][a-z0-9-]*`: how the marketplace knows the app. */
  readonly id: string;
  /** For people: 1 to 200 characters. */
  readonly name: string;
  /** For the marketplace's card. */
  readonly description: string;
  /** An SVG or PNG file of at most 180 kB. Default: the kit's. */
  readonly icon?: URL;
  /** Steps that the app offers, in this order. */
  readonly steps: readonly AnyStep[];
  /** The platform's wire. Default: as the contract assumes it. */
  readonly profile?: WireProfile;
  /** A folder whose files stand in for those of the same name in the kit's `templates/app` and, below `shared`, `templates/shared`. */
  readonly templates?: URL;
  /** Default: none. */
  readonly pages?: readonly AppPage[];
}

/** Describes an app. The kit checks it when the app starts (`checkDefinition`). */
export function defineApp(definition: AppDefinition): AppDefinition {
  return definition;
}

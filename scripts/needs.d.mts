export interface Need {
  readonly what: string;
  /** Groups of alternatives: one program of each group must be there. */
  readonly programs: readonly (readonly string[])[];
  /** Further folders that may hold programs. */
  readonly folders?: string;
  readonly pythonModules?: readonly string[];
  readonly debian: readonly string[];
  readonly installedBy: 'npm run demo' | 'npm test' | 'npm run test:all';
  readonly serves: string;
}
export type NeedName =
  | 'gdal-headers'
  | 'bubblewrap'
  | 'gdal-programs'
  | 'python-gdal'
  | 'postgresql'
  | 'pgbouncer'
  | 'chromium'
  | 'podman'
  | 'promtool'
  | 'debootstrap';
export const needs: Readonly<Record<NeedName, Need>>;
export const neededDrivers: readonly string[];
export function findProgram(names: readonly string[], folders?: string): string | null;
export function missingOf(need: Need): string | null;
export function installCommand(missing: readonly NeedName[]): string;

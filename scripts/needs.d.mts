export interface Need {
  readonly what: string;
  /** Of each row, one must be there. */
  readonly programs: readonly (readonly string[])[];
  /** Where else programs may lie. */
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
  | 'chromium'
  | 'podman'
  | 'debootstrap';
export const needs: Readonly<Record<NeedName, Need>>;
export function findProgram(names: readonly string[], folders?: string): string | null;
export function missingOf(need: Need): string | null;
export function installCommand(missing: readonly NeedName[]): string;

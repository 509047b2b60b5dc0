/** What a run does at the moment. Kept in memory: it is gone with the process, and the run's state is not. */
export interface RunProgress {
  /** 0 to 1; null where there is no telling. */
  readonly fraction: number | null;
  readonly note: string | null;
  /** While uploading. */
  readonly bytes: { readonly sent: number; readonly total: number } | null;
}

export const noProgress: RunProgress = { fraction: null, note: null, bytes: null };

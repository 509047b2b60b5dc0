/**
 * Base of every error the kit raises on purpose. `code` is stable and for programs, `message` is for
 * people, `status` is the HTTP status with which it is answered, `data` carries what a reader may need.
 */
export class KitError extends Error {
  readonly code: string;
  readonly status: number;
  readonly data: Readonly<Record<string, unknown>>;

  constructor(
    code: string,
    message: string,
    options: { status?: number; cause?: unknown; data?: Readonly<Record<string, unknown>> | undefined } = {},
  ) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.name = new.target.name;
    this.code = code;
    this.status = options.status ?? 500;
    this.data = options.data ?? {};
  }
}

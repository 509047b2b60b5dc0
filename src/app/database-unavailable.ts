import type { PostgresPool, PostgresPoolClient, SqliteDatabase, SqliteStatement } from 'kysely';
import pg from 'pg';
import { KitError } from '../contract/index.ts';
import { codeOf, isTransient } from '../files/index.ts';

/** `pg` gives this error no code. */
const isPoolBusy = (error: unknown) =>
  error instanceof Error && error.message === 'timeout exceeded when trying to connect';
const poolBusy = 'no connection to the database was free within 5 s: it is slow, or DATABASE_CONNECTIONS is too small';

/** The database failed for a reason of its own: it is away, is full, or has ended the connection. Ask again. */
export class DatabaseUnavailableError extends KitError {
  constructor(cause: unknown) {
    super('database_away', isPoolBusy(cause) ? poolBusy : 'the database does not answer at the moment', {
      status: 503,
      cause,
    });
  }
}

/**
 * A connection that may end while nobody listens: `pg` then emits an error, and without a listener that
 * would end the process. The next query on it fails and reports the error.
 */
export class QuietClient extends pg.Client {
  constructor(config?: pg.ClientConfig) {
    super(config);
    this.on('error', () => {});
  }
}

/** SQLSTATE classes of errors in the query: data, constraints, syntax and names. A wrong password, a missing permission and a missing database are errors of the database: the operator can correct them, so runs wait. */
const ofTheQuestion = /^(22|23|42(?!501)|0A|21|26|3[4F])/;

/** Turns an error into a `DatabaseUnavailableError` if the database itself failed; returns any other error as it is. */
export function asDatabaseError(error: unknown): unknown {
  if (error instanceof KitError || !(error instanceof Error)) return error;
  return isOfQuestion(error) ? error : new DatabaseUnavailableError(error);
}

/** The driver's own errors, of a connection that broke or could not be made, have no code. */
function isOfQuestion(error: unknown): boolean {
  const code = codeOf(error);
  return error instanceof TypeError || (code !== null && /^[0-9A-Z]{5}$/.test(code) && ofTheQuestion.test(code));
}

const nothingToDo: SqliteStatement = {
  reader: false,
  all: () => [],
  run: () => ({ changes: 0, lastInsertRowid: 0 }),
  iterate: () => [][Symbol.iterator](),
};

/** Wraps a SQLite file for Kysely. Failures of the disk become `DatabaseUnavailableError`. */
export function tellingFile(file: SqliteDatabase & { readonly inTransaction: boolean }): SqliteDatabase {
  const telling =
    <Args extends unknown[], T>(call: (...args: Args) => T) =>
    (...args: Args): T => {
      try {
        return call(...args);
      } catch (error) {
        throw isTransient(error) ? new DatabaseUnavailableError(error) : error;
      }
    };
  return {
    close: () => file.close(),
    prepare: telling((text: string) => {
      // SQLite rolls back by itself when the disk is full: the failing rollback is then no error, and must not hide the real one.
      if (text === 'rollback' && !file.inTransaction) return nothingToDo;
      const statement = file.prepare(text);
      return {
        reader: statement.reader,
        all: telling((parameters: readonly unknown[]) => statement.all(parameters)),
        run: telling((parameters: readonly unknown[]) => statement.run(parameters)),
        iterate: telling((parameters: readonly unknown[]) => statement.iterate(parameters)),
      };
    }),
  };
}

/** Wraps a pool. Failures of the database itself become `DatabaseUnavailableError`. */
export function tellingPool(pool: PostgresPool): PostgresPool {
  const rethrow = (error: unknown): never => {
    throw asDatabaseError(error);
  };
  return {
    options: pool.options,
    async connect() {
      const client = await pool.connect().catch(rethrow);
      let isBroken = false;
      const broken = (error: unknown): never => {
        isBroken = true;
        return rethrow(error);
      };
      return new Proxy(client, {
        get(target, name): unknown {
          // A connection that failed, or did not answer in time, serves nobody else.
          // The pool's interface leaves out the argument by which a broken connection is thrown away.
          if (name === 'release') return () => (target as { release(isBroken: boolean): void }).release(isBroken);
          const value: unknown = Reflect.get(target, name, target);
          if (typeof value !== 'function') return value;
          if (name !== 'query') return value.bind(target);
          return (...args: unknown[]) => {
            const result: unknown = Reflect.apply(value, target, args);
            return result instanceof Promise
              ? result.catch((error: unknown) => (isOfQuestion(error) ? rethrow(error) : broken(error)))
              : result;
          };
        },
      }) satisfies PostgresPoolClient;
    },
    end: () => pool.end(),
  };
}

import * as z from 'zod';
import type { SandboxDatabase } from '../database.ts';
import { newId } from '../secrets.ts';

export interface User {
  readonly id: string;
  readonly email: string;
  readonly name: string;
  readonly organization: string;
}

/** Body of `POST /sandbox/users`. */
export const newUser = z.object({
  id: z
    .string()
    .regex(/^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/, 'must be 1 to 64 of A-Z a-z 0-9 . _ -, first a letter or digit')
    .optional(),
  email: z.email('must be an e-mail address'),
  name: z.string().min(1, 'must not be empty').max(200),
  organization: z.string().max(200).default(''),
});

const seeded: readonly User[] = [
  { id: 'amina', email: 'amina@example.org', name: 'Amina Okafor', organization: 'Coastal Survey' },
  { id: 'bruno', email: 'bruno@example.org', name: 'Bruno Keller', organization: 'Alpine Forestry' },
];

export class Users {
  #database: SandboxDatabase;

  constructor(database: SandboxDatabase) {
    this.#database = database;
    if (this.list().length === 0) seeded.forEach((user) => this.register(user));
  }

  /** Registers a user; one with the same id is replaced. */
  register(user: z.output<typeof newUser>): User {
    const id = user.id ?? newId('user');
    this.#database
      .prepare(
        `insert into users values (@id, @email, @name, @organization, (select count(*) from users))
         on conflict (id) do update set email = @email, name = @name, organization = @organization`,
      )
      .run({ ...user, id });
    return { ...user, id };
  }

  find(id: string): User | null {
    return this.list().find((user) => user.id === id) ?? null;
  }

  list(): User[] {
    return this.#database.prepare<[], User>('select id, email, name, organization from users order by position').all();
  }
}

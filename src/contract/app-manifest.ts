import * as z from 'zod';
import { isPlainOrigin } from './address.ts';

/** @assumed launch: how it reaches the app: a GET with the token in the query, or a POST with it in a form */
export const launchModes = ['query', 'form_post'] as const;

/**
 * Fields that a launch from an item of the catalog has beside the token. An app may ignore them.
 * @assumed launch-item
 */
export const launchItemFields = { collectionId: 'collectionId', itemId: 'itemId' } as const;

function isLaunchUrl(value: string): boolean {
  const url = URL.canParse(value) ? new URL(value) : null;
  // An IPv6 address is a host too; what else is no plain name could say more than where it leads.
  const isPlainHost = url !== null && (isPlainOrigin(url.origin) || /^\[[0-9a-f:.]+\]$/.test(url.hostname));
  return isPlainHost && /^https?:$/.test(url.protocol) && url.username === '' && url.password === '';
}

/** The manifest that an app sends to the marketplace. @assumed app-manifest */
export const appManifest = z.object({
  id: z
    .string('is missing')
    .regex(/^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/, 'must be 1 to 64 of A-Z a-z 0-9 . _ -, first a letter or digit'),
  name: z.string('is missing').min(1, 'must not be empty').max(200, 'must be at most 200 characters'),
  description: z.string().max(2000, 'must be at most 2000 characters').default(''),
  /** The publisher and the version of the app, for the marketplace's card. */
  publisher: z.string().max(200, 'must be at most 200 characters').optional(),
  version: z.string().max(50, 'must be at most 50 characters').optional(),
  launchUrl: z
    .string('is missing')
    .refine(isLaunchUrl, 'must be an http or https address of a plain host name, without user name and password'),
  launchMode: z.enum(launchModes, 'must be query or form_post').default('query'),
  icon: z
    .string()
    .regex(/^data:image\/[a-z0-9.+-]+[;,]/, 'must be a data: URL of an image')
    .max(256 * 1024)
    .optional(),
});
/** An app as the marketplace knows it (spec 3): id, name, launch address and launch mode. */
export type AppManifest = z.output<typeof appManifest>;

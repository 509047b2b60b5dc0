import * as z from 'zod';
import { instant } from '../wire.ts';

/** The answer to every finished upload (spec 2.4). */
export const uploadedFile = z.object({
  fileId: z.string().min(1),
  originalName: z.string(),
  createdAt: instant,
  size: z.int(),
});

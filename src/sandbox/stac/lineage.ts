import * as z from 'zod';
import type { ItemRecord } from './items.ts';

/** Sources that are read of one item. */
const maxSources = 200;

const itemReference = z.object({ collectionId: z.string().min(1).max(512), itemId: z.string().min(1).max(512) });

/** Words of a result's uploader about its making, in `layerProperties` (spec 4.4). Anything may stand there. */
const said = z.object({
  title: z.string().max(200).optional().catch(undefined),
  stepVersion: z.string().max(64).optional().catch(undefined),
  operationId: z.string().max(200).optional().catch(undefined),
  sourceItems: z
    .array(z.unknown())
    .catch([])
    .default([])
    .transform((all) => all.slice(0, maxSources).flatMap((entry) => itemReference.safeParse(entry).data ?? [])),
});

/** The making of a result. */
export interface Lineage {
  /** Title of the processing step. */
  readonly title: string | undefined;
  readonly stepVersion: string | undefined;
  readonly operationId: string | undefined;
  readonly sourceItems: readonly { readonly collectionId: string; readonly itemId: string }[];
}

/** Reads the words of an item's uploader about its making. Null if the item is no uploaded file, or nothing is said. @assumed result-lineage: the words of `layerProperties` are the app's */
export function lineageOf({ source, properties }: Pick<ItemRecord, 'source' | 'properties'>): Lineage | null {
  if (source.kind !== 'file') return null;
  const { data } = said.safeParse(properties['layerProperties']);
  if (!data || (data.title === undefined && data.sourceItems.length === 0)) return null;
  const { title, stepVersion, operationId, sourceItems } = data;
  return { title, stepVersion, operationId, sourceItems };
}

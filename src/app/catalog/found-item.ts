import type { CatalogItem } from '../../contract/index.ts';
import { namesOf } from '../processing/input-facts.ts';

/** An item as `items/search` returns it. `incompatibility` says why it does not fit the step. */
export type FoundItem = ReturnType<typeof viewItem> & { readonly incompatibility?: string | null };

/** Holds no link to the data: the app itself fetches that once the run is approved. */
export function viewItem(item: CatalogItem, onlyCollection: string | undefined) {
  return {
    collectionId: item.collection ?? onlyCollection ?? null,
    itemId: item.id,
    title: item.name ?? item.title ?? item.id,
    datetime: item.datetime ?? null,
    sourceType: item.sourceType ?? null,
    cloudCover: item.cloudCover ?? null,
    bands: item.bands?.map((band) => namesOf(band)[0] ?? '') ?? null,
    bbox: item.bbox ?? null,
    geometry: item.geometry ?? null,
    previewHref: item.previewHref ?? null,
  };
}

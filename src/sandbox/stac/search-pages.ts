import type { Request } from 'express';
import { mediaTypes, stacPaths, type SearchRequest, type StacLink } from '../../contract/index.ts';
import type { ItemRecord } from './items.ts';
import type { SearchResult } from './search.ts';
import { link, withFields, type StacObjects } from './stac-objects.ts';

/** An item as the answer to a search shows it. */
export function searchView(request: SearchRequest, req: Request, objects: StacObjects): (item: ItemRecord) => unknown {
  return (item) =>
    withFields(objects.item(item, { inSearch: true, withRaster: req.method !== 'POST' }), request.fields);
}

/** The answer to a search (spec 4.2), its items as `searchView` has them. */
export function searchAnswer(
  result: SearchResult<unknown>,
  request: SearchRequest,
  req: Request,
  objects: StacObjects,
  strict: boolean,
) {
  const { limit, offset } = result;
  const self: StacLink = {
    ...link('self', `${stacPaths.search}?limit=${limit}&offset=${offset}`, mediaTypes.geojson, pageTitle(result)),
    method: 'GET',
  };
  return {
    type: 'FeatureCollection',
    features: result.items,
    numberMatched: result.numberMatched,
    numberReturned: result.items.length,
    ...(request.limit === undefined ? {} : { limit }),
    ...(request.offset === undefined ? {} : { offset }),
    sortby: result.sortby,
    links: [
      self,
      ...(strict ? [] : [objects.rootLink()]),
      ...(hasMore(result) ? [nextOfSearch(result, req, objects)] : []),
    ],
  };
}

/** A page of the items list (spec 4.1). */
export function itemsAnswer(
  result: SearchResult<unknown>,
  collectionId: string,
  req: Request,
  objects: StacObjects,
  strict: boolean,
) {
  const path = objects.path(stacPaths.items, { collectionId });
  const links: StacLink[] = [
    {
      ...link('self', `${path}?${pageQuery(req, result.limit, result.offset)}`, mediaTypes.geojson, pageTitle(result)),
      method: 'GET',
    },
    {
      ...link('collection', objects.path(stacPaths.collection, { collectionId }), mediaTypes.json, collectionId),
      method: 'GET',
    },
  ];
  if (!strict) links.push(objects.rootLink());
  if (hasMore(result)) {
    const next = `${objects.href(stacPaths.items, { collectionId })}?${pageQuery(req, result.limit, result.offset + result.items.length)}`;
    links.push({ ...link('next', next, mediaTypes.geojson, 'Next page'), method: 'GET' });
  }
  const counts = { numberMatched: result.numberMatched, numberReturned: result.items.length };
  return { type: 'FeatureCollection', features: result.items, ...(strict ? {} : counts), links };
}

function nextOfSearch({ items, limit, offset }: SearchResult<unknown>, req: Request, objects: StacObjects): StacLink {
  const href = objects.href(stacPaths.search);
  if (req.method === 'POST')
    return {
      ...link('next', href, mediaTypes.geojson, 'Next page'),
      method: 'POST',
      body: { limit, offset: offset + items.length },
      merge: true,
    };
  return {
    ...link('next', `${href}?${pageQuery(req, limit, offset + items.length)}`, mediaTypes.geojson, 'Next page'),
    method: 'GET',
  };
}

/** The query as it was asked, on another page. */
function pageQuery(req: Request, limit: number, offset: number): string {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(req.query))
    if (typeof value === 'string' && name !== 'limit' && name !== 'offset') query.set(name, value);
  query.set('limit', String(limit));
  query.set('offset', String(offset));
  return query.toString();
}

function hasMore({ items, offset, numberMatched }: SearchResult<unknown>): boolean {
  return items.length > 0 && offset + items.length < numberMatched;
}

function pageTitle({ limit, offset }: SearchResult<unknown>): string {
  return `Page ${Math.floor(offset / limit) + 1}`;
}

import type { Request } from 'express';
import { mediaTypes, stacPaths, type SearchRequest, type StacLink } from '../../contract/index.ts';
import type { SearchResult } from './search.ts';
import { link, withFields, type StacObjects } from './stac-objects.ts';

/** The answer to a search (spec 4.2). */
export function searchAnswer(result: SearchResult, request: SearchRequest, req: Request, objects: StacObjects, strict: boolean) {
  const { limit, offset } = result;
  const self: StacLink = { ...link('self', `${stacPaths.search}?limit=${limit}&offset=${offset}`, mediaTypes.geojson, pageTitle(result)), method: 'GET' };
  return {
    type: 'FeatureCollection',
    features: result.items.map((item) => withFields(objects.item(item, { inSearch: true, withRaster: req.method !== 'POST' }), request.fields)),
    numberMatched: result.numberMatched,
    numberReturned: result.items.length,
    ...(request.limit === undefined ? {} : { limit }),
    ...(request.offset === undefined ? {} : { offset }),
    sortby: result.sortby,
    links: [self, ...(strict ? [] : [objects.rootLink()]), ...(hasMore(result) ? [nextOfSearch(result, req, objects)] : [])],
  };
}

/** A page of the items list (spec 4.1). */
export function itemsAnswer(result: SearchResult, collectionId: string, req: Request, objects: StacObjects, strict: boolean) {
  const path = objects.path(stacPaths.items, { collectionId });
  const links: StacLink[] = [
    { ...link('self', `${path}?${pageQuery(req, result.limit, result.offset)}`, mediaTypes.geojson, pageTitle(result)), method: 'GET' },
    { ...link('collection', objects.path(stacPaths.collection, { collectionId }), mediaTypes.json, collectionId), method: 'GET' },
  ];
  if (!strict) links.push(objects.rootLink());
  if (hasMore(result)) {
    const next = `${objects.href(stacPaths.items, { collectionId })}?${pageQuery(req, result.limit, result.offset + result.items.length)}`;
    links.push({ ...link('next', next, mediaTypes.geojson, 'Next page'), method: 'GET' });
  }
  const counts = { numberMatched: result.numberMatched, numberReturned: result.items.length };
  return { type: 'FeatureCollection', features: result.items.map((item) => objects.item(item)), ...(strict ? {} : counts), links };
}

function nextOfSearch({ items, limit, offset }: SearchResult, req: Request, objects: StacObjects): StacLink {
  const href = objects.href(stacPaths.search);
  if (req.method === 'POST') return { ...link('next', href, mediaTypes.geojson, 'Next page'), method: 'POST', body: { limit, offset: offset + items.length }, merge: true };
  return { ...link('next', `${href}?${pageQuery(req, limit, offset + items.length)}`, mediaTypes.geojson, 'Next page'), method: 'GET' };
}

/** The query as it was asked, on another page. */
function pageQuery(req: Request, limit: number, offset: number): string {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(req.query)) if (typeof value === 'string' && name !== 'limit' && name !== 'offset') query.set(name, value);
  query.set('limit', String(limit));
  query.set('offset', String(offset));
  return query.toString();
}

function hasMore({ items, offset, numberMatched }: SearchResult): boolean {
  return items.length > 0 && offset + items.length < numberMatched;
}

function pageTitle({ limit, offset }: SearchResult): string {
  return `Page ${Math.floor(offset / limit) + 1}`;
}

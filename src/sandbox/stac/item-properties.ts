import { iso } from '../clock.ts';

export interface ItemDescription {
  readonly name: string;
  readonly description: string;
  readonly layerType: string;
  readonly ingestedAtMs: number;
  /** Data provider. */
  readonly provider: string;
  readonly sourceType: string;
  /** More properties, by the names that they have in the item; they win. */
  readonly more?: Readonly<Record<string, unknown>>;
}

/** All properties of spec 2.3 but `datetime`. The view extension wants one of its fields: `view:off_nadir` (contract, "STAC"). */
export function itemProperties(item: ItemDescription): Record<string, unknown> {
  return {
    name: item.name,
    description: item.description,
    'platform:layer_type': item.layerType,
    layer_type: item.layerType,
    'platform:ingestion_date': iso(item.ingestedAtMs),
    source_type: item.sourceType,
    'platform:source': item.provider,
    'platform:source_type': item.sourceType,
    'platform:source_sub_type': 'DEFAULT',
    'view:off_nadir': 0,
    ...item.more,
  };
}

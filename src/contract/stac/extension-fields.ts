import * as z from 'zod';
import { hasKey } from '../keys.ts';

const degrees = (low: number, high: number) => z.number().min(low).max(high);
const text = z.string().min(1);
const metres = z.number().min(0);

/** Properties of the view extension v1.0.0 and the SAR extension v1.2.0, as their schemas have them; no other of these prefixes is valid. */
export const extensionFields = {
  'view:off_nadir': degrees(0, 90),
  'view:incidence_angle': degrees(0, 90),
  'view:azimuth': degrees(0, 360),
  'view:sun_azimuth': degrees(0, 360),
  'view:sun_elevation': degrees(-90, 90),
  'sar:instrument_mode': text,
  'sar:frequency_band': z.enum(['P', 'L', 'S', 'C', 'X', 'Ku', 'K', 'Ka']),
  'sar:center_frequency': z.number(),
  'sar:polarizations': z
    .array(z.enum(['HH', 'VV', 'HV', 'VH', 'LH', 'LV', 'RH', 'RV', 'CH', 'CV']))
    .min(1)
    .refine((values) => new Set(values).size === values.length, 'must not repeat'),
  'sar:product_type': text,
  'sar:resolution_range': metres,
  'sar:resolution_azimuth': metres,
  'sar:pixel_spacing_range': metres,
  'sar:pixel_spacing_azimuth': metres,
  'sar:looks_range': z.int().min(0),
  'sar:looks_azimuth': z.int().min(0),
  'sar:looks_equivalent_number': z.number().min(0),
  'sar:observation_direction': z.enum(['left', 'right']),
  'sar:beam_ids': z.array(z.string()),
} as const;

/** Returns the fault in the properties of the two extensions, or null. */
export function extensionFault(
  properties: Readonly<Record<string, unknown>>,
): { path: string; message: string } | null {
  for (const [name, value] of Object.entries(properties)) {
    if (!/^(view|sar):/.test(name)) continue;
    const schema = hasKey(extensionFields, name) ? extensionFields[name] : null;
    if (schema === null)
      return {
        path: `properties.${name}`,
        message: 'is no property of the view extension v1.0.0 or the SAR extension v1.2.0',
      };
    const read = schema.safeParse(value);
    if (!read.success) return { path: `properties.${name}`, message: read.error.issues[0]?.message ?? 'is not valid' };
  }
  return null;
}

import { KitError } from '../contract/kit-error.ts';

/** Smallest and largest value of each integer type that 64-bit floats store exactly, by GDAL's names. */
export const integerRanges: Readonly<Record<string, readonly [lowest: number, highest: number]>> = {
  Byte: [0, 255],
  Int8: [-128, 127],
  UInt16: [0, 65_535],
  Int16: [-32_768, 32_767],
  UInt32: [0, 4_294_967_295],
  Int32: [-2_147_483_648, 2_147_483_647],
};

/** The smallest real type that stores every number of these types exactly, by GDAL's names. */
export const realTypeOf = (dataTypes: readonly (string | null)[]): 'Float32' | 'Float64' =>
  dataTypes.every((dataType) => /^(Byte|Int8|U?Int16|Float32)$/.test(dataType ?? '')) ? 'Float32' : 'Float64';

/** True if a value is within the range of a type. Real types have no range here. */
export function isInRange(dataType: string | null, value: number): boolean {
  const range = integerRanges[dataType ?? ''];
  return !range || (value >= range[0] && value <= range[1]);
}

/** True if a band of this type can store a number. Real types store every number. */
export function canHold(dataType: string | null, value: number): boolean {
  if (dataType?.endsWith('Int64')) return Number.isSafeInteger(value) && (value >= 0 || dataType === 'Int64');
  return !integerRanges[dataType ?? ''] || (Number.isInteger(value) && isInRange(dataType, value));
}

/** Largest integer that a conversion to 64-bit integers keeps: GDAL adds 0.5 to the real number first. */
const mostExact = 2 ** 52;

/** Throws `KitError` (`type_not_supported`) for an integer of 64 bits that a real number does not store exactly. NaN passes. */
export function requireExact(value: number): void {
  if (!(Math.abs(value) > mostExact)) return;
  throw new KitError(
    'type_not_supported',
    `the raster holds ${value}, and integers of 64 bits stay exact up to ${mostExact} only; convert it to another type first`,
    { status: 422 },
  );
}

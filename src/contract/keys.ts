/** The names of an object's own fields, of which there is at least one. */
export const keysOf = <T extends object>(object: T) =>
  // `Object.keys` gives any texts, because an object may have more fields than its type.
  Object.keys(object) as [keyof T & string, ...(keyof T & string)[]];

/** True for the name of an own field of the object. */
export const hasKey = <T extends object>(object: T, key: string): key is keyof T & string => Object.hasOwn(object, key);

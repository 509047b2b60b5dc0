import * as z from 'zod';

/** Ends included, epoch milliseconds; an open end is infinite. */
export interface Interval {
  readonly startMs: number;
  readonly endMs: number;
}

const dateTime = /^(\d{4})-(\d\d)-(\d\d)[Tt](\d\d):(\d\d):(\d\d)(\.\d+)?([Zz]|[+-]\d\d:\d\d)$/;

/**
 * An RFC 3339 date-time, to the letter of its grammar: a day that its month has, an offset, a leap second
 * only at the end of a UTC month. Null for anything else. A fraction finer than a millisecond is kept in
 * the milliseconds' fraction.
 */
export function parseInstant(text: string): number | null {
  const match = dateTime.exec(text);
  if (!match) return null;
  const [year = 0, month = 0, day = 0, hour = 0, minute = 0, second = 0] = match.slice(1, 7).map(Number);
  const fractionMs = Number(`0${match[7] ?? ''}`) * 1000;
  const offset = offsetMinutes(match[8] ?? 'Z');
  const daysInMonth = new Date(Date.UTC(2000, month, 0)).getUTCDate() - (month === 2 && !isLeapYear(year) ? 1 : 0);
  if (
    offset === null ||
    month < 1 ||
    month > 12 ||
    day < 1 ||
    day > daysInMonth ||
    hour > 23 ||
    minute > 59 ||
    second > 60
  )
    return null;
  const date = new Date(0);
  date.setUTCFullYear(year, month - 1, day);
  date.setUTCHours(hour, minute - offset, second);
  // :60 is the first instant of the next minute, and must be that of a month.
  if (second === 60 && (date.getUTCDate() !== 1 || date.getUTCHours() !== 0 || date.getUTCMinutes() !== 0)) return null;
  return date.getTime() + fractionMs;
}

function isLeapYear(year: number): boolean {
  return (year % 4 === 0 && year % 100 !== 0) || year % 400 === 0;
}

function offsetMinutes(text: string): number | null {
  if (/^z$/i.test(text)) return 0;
  const [hours = 0, minutes = 0] = text.slice(1).split(':').map(Number);
  if (hours > 23 || minutes > 59) return null;
  return (text.startsWith('-') ? -1 : 1) * (hours * 60 + minutes);
}

const rule =
  'must be an RFC 3339 interval such as 2024-01-01T00:00:00Z/2024-12-31T23:59:59Z, where one end may be open (..)';

/** `start/end`, one end may be `..` or empty (spec 4.2). @assumed open-interval */
export const datetimeInterval = z.string(rule).transform((text, context) => parseInterval(text, context));

/** A `datetimeInterval` or a single instant. */
export const datetimeFilter = z.string(rule).transform((text, context) => {
  const instant = parseInstant(text);
  return instant === null ? parseInterval(text, context) : { startMs: Math.ceil(instant), endMs: Math.floor(instant) };
});

function parseInterval(text: string, context: z.core.$RefinementCtx<string>): Interval {
  const ends = text.split('/');
  const isOpen = (end: string | undefined) => end === '' || end === '..';
  const [start, end] = ends.map((name) => (isOpen(name) ? null : parseInstant(name)));
  const isBroken = ends.length !== 2 || (start === null && !isOpen(ends[0])) || (end === null && !isOpen(ends[1]));
  const fault = isBroken
    ? rule
    : start === null && end === null
      ? 'must have at least one end'
      : start != null && end != null && start > end
        ? 'must start before it ends'
        : null;
  if (fault !== null) {
    context.issues.push({ code: 'custom', message: fault, input: text });
    return z.NEVER;
  }
  return { startMs: Math.ceil(start ?? -Infinity), endMs: Math.floor(end ?? Infinity) };
}

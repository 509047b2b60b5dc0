/** Statistics of values that come one after the other (Welford), so that nothing of them is kept. */
export class ZoneStatistics {
  count = 0;
  #mean = 0;
  #squares = 0;
  #min = Infinity;
  #max = -Infinity;
  #sum = 0;

  add(value: number): void {
    this.count += 1;
    const step = value - this.#mean;
    this.#mean += step / this.count;
    this.#squares += step * (value - this.#mean);
    this.#min = Math.min(this.#min, value);
    this.#max = Math.max(this.#max, value);
    this.#sum += value;
  }

  /** Of no values: null, but for their number and sum. The deviation is that of all pixels, not of a sample. */
  get values() {
    const of = (value: number) => (this.count === 0 ? null : value);
    return {
      count: this.count,
      mean: of(this.#mean),
      min: of(this.#min),
      max: of(this.#max),
      stdDev: of(Math.sqrt(this.#squares / this.count)),
      sum: this.#sum,
    };
  }
}

type Row = Readonly<Record<string, string | number | null>>;

/** Comma-separated, with a header (RFC 4180). A text that a spreadsheet would take for a formula is one no more. */
export function csvOf(columns: readonly string[], rows: readonly Row[]): string {
  const cell = (value: string | number | null | undefined) => {
    if (typeof value !== 'string') return String(value ?? '');
    const plain = /^[=+\-@\t\r]/.test(value) ? `'${value}` : value;
    return /[",\r\n]/.test(plain) ? `"${plain.replaceAll('"', '""')}"` : plain;
  };
  const lines = [columns.join(','), ...rows.map((row) => columns.map((name) => cell(row[name])).join(','))];
  return `${lines.join('\r\n')}\r\n`;
}

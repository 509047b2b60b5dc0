import type { OnnxGraph } from './onnx.ts';

/** Samples as rows of `inputs` numbers, and the class of each. */
export interface Samples {
  readonly inputs: number;
  readonly rows: Float32Array;
  readonly classes: Uint8Array;
}

/** Mean and standard deviation of each input. */
export interface Normalisation {
  readonly mean: readonly number[];
  readonly std: readonly number[];
}

/** One hidden layer with ReLU: per pixel, so it is two 1 x 1 convolutions. */
export interface Network {
  readonly inputs: number;
  readonly hidden: number;
  readonly outputs: number;
  /** Weights and biases of both layers, row by row. */
  readonly weights: readonly [Float32Array, Float32Array, Float32Array, Float32Array];
}

const epochs = 12;
const batchSize = 256;
const learningRate = 0.01;

export function normalisationOf({ inputs, rows }: Samples): Normalisation {
  const count = rows.length / inputs;
  const mean = Array.from({ length: inputs }, (_, k) => sumOver(count, (i) => rows[i * inputs + k] ?? 0) / count);
  const std = mean.map((m, k) => Math.sqrt(sumOver(count, (i) => ((rows[i * inputs + k] ?? 0) - m) ** 2) / count));
  // Short enough to be read in model.json, and used just so.
  return {
    mean: mean.map((value) => Number(value.toPrecision(6))),
    std: std.map((value) => Number(value.toPrecision(6))),
  };
}

function sumOver(count: number, of: (i: number) => number): number {
  let sum = 0;
  for (let i = 0; i < count; i++) sum += of(i);
  return sum;
}

/** Fits a network to the samples (Adam on the cross-entropy). The same for the same samples, `random` included. */
export function train(
  samples: Samples,
  { mean, std }: Normalisation,
  hidden: number,
  outputs: number,
  random: () => number,
): Network {
  const { inputs, rows, classes } = samples;
  const count = classes.length;
  const initial = (length: number, fanIn: number) =>
    Float32Array.from({ length }, () => (random() * 2 - 1) * Math.sqrt(3 / fanIn));
  const weights = [
    initial(hidden * inputs, inputs),
    new Float32Array(hidden),
    initial(outputs * hidden, hidden),
    new Float32Array(outputs),
  ] as const;
  const gradients = weights.map((layer) => new Float64Array(layer.length));
  const moments = weights.map((layer) => [new Float64Array(layer.length), new Float64Array(layer.length)] as const);
  const order = Uint32Array.from({ length: count }, (_, i) => i);
  const x = new Float64Array(inputs);
  const state = { hidden: new Float64Array(hidden), output: new Float64Array(outputs) };
  let step = 0;
  for (let epoch = 0; epoch < epochs; epoch++) {
    shuffle(order, random);
    for (let from = 0; from < count; from += batchSize) {
      const batch = order.subarray(from, from + batchSize);
      gradients.forEach((gradient) => gradient.fill(0));
      for (const i of batch) {
        for (let k = 0; k < inputs; k++) x[k] = ((rows[i * inputs + k] ?? 0) - (mean[k] ?? 0)) / (std[k] ?? 1);
        forward({ inputs, hidden, outputs, weights: [...weights] }, x, state);
        backward(x, state, weights, gradients, classes[i] ?? 0);
      }
      step += 1;
      weights.forEach((layer, l) =>
        adam(
          layer,
          gradients[l] as Float64Array,
          moments[l] as readonly [Float64Array, Float64Array],
          batch.length,
          step,
        ),
      );
    }
  }
  return { inputs, hidden, outputs, weights: [...weights] };
}

type State = { hidden: Float64Array; output: Float64Array };

/** Fills `state` with the hidden layer and the probabilities. */
function forward({ weights: [w1, b1, w2, b2] }: Network, x: Float64Array, { hidden, output }: State): void {
  for (let h = 0; h < hidden.length; h++) {
    let sum = b1[h] ?? 0;
    for (let k = 0; k < x.length; k++) sum += (w1[h * x.length + k] ?? 0) * (x[k] ?? 0);
    hidden[h] = Math.max(0, sum);
  }
  let total = 0;
  for (let o = 0; o < output.length; o++) {
    let sum = b2[o] ?? 0;
    for (let h = 0; h < hidden.length; h++) sum += (w2[o * hidden.length + h] ?? 0) * (hidden[h] ?? 0);
    total += output[o] = Math.exp(Math.min(50, sum));
  }
  for (let o = 0; o < output.length; o++) output[o] = (output[o] ?? 0) / total;
}

function backward(
  x: Float64Array,
  { hidden, output }: State,
  [, , w2]: Network['weights'],
  gradients: readonly Float64Array[],
  wanted: number,
): void {
  const [g1, h1, g2, h2] = gradients as [Float64Array, Float64Array, Float64Array, Float64Array];
  for (let h = 0; h < hidden.length; h++) {
    let back = 0;
    for (let o = 0; o < output.length; o++) {
      const error = (output[o] ?? 0) - (o === wanted ? 1 : 0);
      g2[o * hidden.length + h] = (g2[o * hidden.length + h] ?? 0) + error * (hidden[h] ?? 0);
      if (h === 0) h2[o] = (h2[o] ?? 0) + error;
      back += error * (w2[o * hidden.length + h] ?? 0);
    }
    if ((hidden[h] ?? 0) <= 0) continue;
    h1[h] = (h1[h] ?? 0) + back;
    for (let k = 0; k < x.length; k++) g1[h * x.length + k] = (g1[h * x.length + k] ?? 0) + back * (x[k] ?? 0);
  }
}

function adam(
  layer: Float32Array,
  gradient: Float64Array,
  [first, second]: readonly [Float64Array, Float64Array],
  samples: number,
  step: number,
): void {
  for (let i = 0; i < layer.length; i++) {
    const g = (gradient[i] ?? 0) / samples;
    const m = (first[i] = 0.9 * (first[i] ?? 0) + 0.1 * g);
    const v = (second[i] = 0.999 * (second[i] ?? 0) + 0.001 * g * g);
    layer[i] = (layer[i] ?? 0) - (learningRate * (m / (1 - 0.9 ** step))) / (Math.sqrt(v / (1 - 0.999 ** step)) + 1e-8);
  }
}

function shuffle(order: Uint32Array, random: () => number): void {
  for (let i = order.length - 1; i > 0; i--) {
    const j = Math.floor(random() * (i + 1));
    [order[i], order[j]] = [order[j] ?? 0, order[i] ?? 0];
  }
}

/** The class with the highest probability, of each sample. */
export function classify(
  network: Network,
  { inputs, rows, classes }: Samples,
  { mean, std }: Normalisation,
): Uint8Array {
  const state = { hidden: new Float64Array(network.hidden), output: new Float64Array(network.outputs) };
  const x = new Float64Array(inputs);
  return Uint8Array.from(classes, (_, i) => {
    for (let k = 0; k < inputs; k++) x[k] = ((rows[i * inputs + k] ?? 0) - (mean[k] ?? 0)) / (std[k] ?? 1);
    forward(network, x, state);
    return state.output.indexOf(Math.max(...state.output));
  });
}

/** The network on images: normalised bands [1, bands, height, width] in, probabilities [1, classes, height, width] out. */
export function graphOf(name: string, { inputs, hidden, outputs, weights: [w1, b1, w2, b2] }: Network): OnnxGraph {
  return {
    name,
    nodes: [
      { op: 'Conv', inputs: ['bands', 'w1', 'b1'], outputs: ['z1'], attributes: { kernel_shape: [1, 1] } },
      { op: 'Relu', inputs: ['z1'], outputs: ['a1'] },
      { op: 'Conv', inputs: ['a1', 'w2', 'b2'], outputs: ['z2'], attributes: { kernel_shape: [1, 1] } },
      { op: 'Softmax', inputs: ['z2'], outputs: ['probabilities'], attributes: { axis: 1 } },
    ],
    initializers: {
      w1: { dims: [hidden, inputs, 1, 1], values: w1 },
      b1: { dims: [hidden], values: b1 },
      w2: { dims: [outputs, hidden, 1, 1], values: w2 },
      b2: { dims: [outputs], values: b2 },
    },
    inputs: { bands: [1, inputs, 'height', 'width'] },
    outputs: { probabilities: [1, outputs, 'height', 'width'] },
  };
}

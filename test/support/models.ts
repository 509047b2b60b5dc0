import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { writeOnnx, type OnnxGraph } from '../../lab/models/onnx.ts';

/** Writes a model folder into the data folder of a sandbox. */
export async function putModel(dataDir: string, id: string, description: object, graph: OnnxGraph): Promise<void> {
  const folder = join(dataDir, 'models', id);
  await mkdir(folder, { recursive: true });
  await writeFile(
    join(folder, 'model.json'),
    JSON.stringify({
      name: id,
      version: '1',
      type: 'SEGMENTATION',
      labels: ['low', 'high'],
      bands: ['1'],
      tileSize: 16,
      ...description,
    }),
  );
  await writeFile(join(folder, 'model.onnx'), writeOnnx(graph));
}

/** Scores of two classes of each pixel: 0 and the value less 100. With `blur` the value is the mean of the 3 x 3 pixels round it. */
export function thresholdGraph(blur = false): OnnxGraph {
  const side = blur ? 3 : 1;
  const weights = new Float32Array(2 * side * side);
  weights.fill(1 / (side * side), side * side);
  return {
    name: 'threshold',
    nodes: [
      {
        op: 'Conv',
        inputs: ['x', 'w', 'b'],
        outputs: ['scores'],
        attributes: { kernel_shape: [side, side], pads: Array<number>(4).fill((side - 1) / 2) },
      },
    ],
    initializers: {
      w: { dims: [2, 1, side, side], values: weights },
      b: { dims: [2], values: Float32Array.from([0, -100]) },
    },
    inputs: { x: [1, 1, 'h', 'w'] },
    outputs: { scores: [1, 2, 'h', 'w'] },
  };
}

/** Two scores of a whole tile: 0, and the mean of its pixels less 100. */
export function tileGraph(): OnnxGraph {
  return {
    name: 'tile',
    nodes: [
      { op: 'GlobalAveragePool', inputs: ['x'], outputs: ['mean'] },
      { op: 'Conv', inputs: ['mean', 'w', 'b'], outputs: ['scores4'], attributes: { kernel_shape: [1, 1] } },
      { op: 'Flatten', inputs: ['scores4'], outputs: ['scores'], attributes: { axis: 1 } },
    ],
    initializers: {
      w: { dims: [2, 1, 1, 1], values: Float32Array.from([0, 1]) },
      b: { dims: [2], values: Float32Array.from([0, -100]) },
    },
    inputs: { x: [1, 1, 'h', 'w'] },
    outputs: { scores: [1, 2] },
  };
}

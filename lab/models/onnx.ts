import protobuf from 'protobufjs';

/** The part of ONNX's own schema (onnx.proto) that small networks need. */
const schema = `
  syntax = "proto3";
  message Model { int64 ir_version = 1; string producer_name = 2; Graph graph = 7; repeated OperatorSet opset_import = 8; }
  message OperatorSet { string domain = 1; int64 version = 2; }
  message Graph { repeated Node node = 1; string name = 2; repeated Tensor initializer = 5; repeated ValueInfo input = 11; repeated ValueInfo output = 12; }
  message Node { repeated string input = 1; repeated string output = 2; string name = 3; string op_type = 4; repeated Attribute attribute = 5; }
  message Attribute { string name = 1; int64 i = 3; repeated int64 ints = 8; int32 type = 20; }
  message Tensor { repeated int64 dims = 1; int32 data_type = 2; string name = 8; bytes raw_data = 9; }
  message ValueInfo { string name = 1; Type type = 2; }
  message Type { TensorType tensor_type = 1; }
  message TensorType { int32 elem_type = 1; Shape shape = 2; }
  message Shape { repeated Dimension dim = 1; }
  message Dimension { oneof value { int64 dim_value = 1; string dim_param = 2; } }
`;
const model = protobuf.parse(schema, { keepCase: true }).root.lookupType('Model');

const float = 1;
const int64 = 7;

export interface OnnxNode {
  readonly op: string;
  readonly inputs: readonly string[];
  readonly outputs: readonly string[];
  /** Integers only: all that these networks need. */
  readonly attributes?: Readonly<Record<string, number | readonly number[]>>;
}

export interface OnnxTensor {
  readonly dims: readonly number[];
  readonly values: Float32Array | BigInt64Array;
}

/** A dimension is a number, or a name where it may be any. */
export type Dimensions = readonly (number | string)[];

export interface OnnxGraph {
  readonly name: string;
  readonly nodes: readonly OnnxNode[];
  readonly initializers: Readonly<Record<string, OnnxTensor>>;
  readonly inputs: Readonly<Record<string, Dimensions>>;
  readonly outputs: Readonly<Record<string, Dimensions>>;
}

/** An ONNX file (opset 17) of a graph. The same bytes for the same graph. */
export function writeOnnx(graph: OnnxGraph): Uint8Array {
  return model
    .encode({
      ir_version: 8,
      producer_name: 'marketplace-app-kit',
      opset_import: [{ domain: '', version: 17 }],
      graph: {
        name: graph.name,
        node: graph.nodes.map(({ op, inputs, outputs, attributes = {} }) => ({
          op_type: op,
          input: inputs,
          output: outputs,
          attribute: Object.entries(attributes).map(([name, value]) =>
            typeof value === 'number' ? { name, i: value, type: 2 } : { name, ints: value, type: 7 },
          ),
        })),
        initializer: Object.entries(graph.initializers).map(([name, { dims, values }]) => ({
          name,
          dims,
          data_type: values instanceof Float32Array ? float : int64,
          raw_data: new Uint8Array(values.buffer, values.byteOffset, values.byteLength),
        })),
        input: Object.entries(graph.inputs).map(valueInfo),
        output: Object.entries(graph.outputs).map(valueInfo),
      },
    })
    .finish();
}

function valueInfo([name, dims]: [string, Dimensions]) {
  const dim = dims.map((one) => (typeof one === 'number' ? { dim_value: one } : { dim_param: one }));
  return { name, type: { tensor_type: { elem_type: float, shape: { dim } } } };
}

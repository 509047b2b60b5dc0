declare module 'stac-node-validator' {
  interface Report {
    readonly valid: boolean;
    readonly messages: readonly string[];
    readonly results: unknown;
    readonly children: readonly Report[];
  }
  export default function validate(
    data: object,
    config: { loader: (uri: string) => Promise<unknown>; schemas: string; schemaMap: Readonly<Record<string, string>> },
  ): Promise<Report>;
}

declare module 'stac-node-validator/src/loader/node.js' {
  export default function loader(uri: string): Promise<unknown>;
}

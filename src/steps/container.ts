/** Where a container finds what it works with. Host and child agree on it. */
export const inContainer = {
  inputs: '/input',
  work: '/work',
  outputs: '/output',
  /** Folder of the inputs that the child has made itself. */
  given: 'given',
  input: (i: number, name: string) => `/input/${i}/${name}`,
} as const;

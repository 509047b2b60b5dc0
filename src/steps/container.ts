/** Paths of files in a container. Host and child agree on them. */
export const inContainer = {
  inputs: '/input',
  work: '/work',
  outputs: '/output',
  /** Folder of the inputs that the child has made itself. */
  given: 'given',
  input: (i: number, name: string) => `/input/${i}/${name}`,
} as const;

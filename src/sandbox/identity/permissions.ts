/** `files_admin` and `files_upload` are the spec's (section 5). @assumed permission-names: the other two */
export const permissions = ['files_admin', 'files_upload', 'external_app', 'inference'] as const;
export type Permission = (typeof permissions)[number];

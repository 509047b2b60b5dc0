/** Parts that every HTTP server of the kit needs: app, sandbox and the demo's pages. */
export { equalSecrets } from './equal-secrets.ts';
export { EventStreams } from './event-streams.ts';
export { FolderInUseError, ownFolder } from './own-folder.ts';
export { logOutput, type LogOutput } from './log-output.ts';
export { hostNameOf, isLocalRequest, wasForwarded } from './request-origin.ts';
export { listenError, serve, urlOf, type Served, type ServeOptions } from './serve.ts';
export { serverVariables, shownSetting, tlsSettings, type TlsFiles } from './settings.ts';

/** Files and folders of the machine, their JSON, and the errors of its system. */
export { importDefault } from './import-default.ts';
export { isRecord, ownJson } from './json.ts';
export { identityOf, isSameFile, type FileIdentity } from './file-identity.ts';
export { folderBytes, folderUse } from './folder-bytes.ts';
export {
  hasApp,
  isPackage,
  kitCommand,
  kitFolder,
  kitRoot,
  kitVersion,
  scriptCommand,
  vendoredFolders,
} from './kit-folder.ts';
export { copyPlainFile, movePlainFile, NotAPlainFileError, requirePlainFile } from './plain-file.ts';
export { ensurePrivateFile } from './private-file.ts';
export { removeFolder } from './remove-folder.ts';
export { resolveFileInside, resolveInside, UnsafePathError } from './safe-path.ts';
export { scratchFolder, type ScratchFolder } from './scratch-folder.ts';
export { codeOf, isTransient, messageOf } from './system-error.ts';
export { withoutFolders } from './without-folders.ts';

// Makes the packages that only the sandbox needs dependencies in package.json, and drops the development tools.
import { readFileSync, writeFileSync } from 'node:fs';

const manifest = JSON.parse(readFileSync('package.json', 'utf8'));
manifest.dependencies = { ...manifest.dependencies, ...manifest.peerDependencies };
for (const name of ['devDependencies', 'peerDependencies', 'peerDependenciesMeta']) delete manifest[name];
writeFileSync('package.json', JSON.stringify(manifest));

// Joins what a process needs to start into a few files: `node scripts/bundle.mjs FOLDER`, where FOLDER is what the
// compiler made of src/.
//
// Finding and reading 600 files of ours and of the packages takes longer than running what they hold. The files in
// FOLDER/bundle are as deep as those that they are made of, so that paths from them say the same; their source maps
// lead to src/.
import { join } from 'node:path'

/** What a process begins with: the command, and a thread that answers. */
const entries = ['cli/main.js', 'main/threads/worker.js']
/** Native code, which is looked for beside its package, and what is large and seldom loaded. */
const notJoined = ['koffi', '@kubernetes/client-node']
/** Packages in CommonJS ask for what Node has by `require`, which a module does not have. */
const banner = "import { createRequire } from 'node:module'; const require = createRequire(import.meta.url);"

const [folder] = process.argv.slice(2)
let esbuild = null
try {
  esbuild = await import('esbuild')
} catch (error) {
  if (error.code !== 'ERR_MODULE_NOT_FOUND') throw error
  // Packages that were installed before it was one of them: what is compiled runs without this too.
  console.error('esbuild is not installed (npm ci): what is built starts more slowly than it could')
}
await esbuild?.build({
  entryPoints: entries.map((entry) => join(folder, entry)),
  outdir: join(folder, 'bundle'),
  entryNames: '[name]',
  bundle: true,
  splitting: true,
  format: 'esm',
  platform: 'node',
  target: 'node22',
  sourcemap: true,
  sourcesContent: false,
  external: notJoined,
  banner: { js: banner },
  logLevel: 'warning'
})

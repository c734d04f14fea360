/** docs/deployment.md and the Dockerfile say what is there: folders, configurations, versions, addresses. */
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'tap'
import { parse } from 'yaml'
import { run } from '../../src/cli/run.ts'
import { root } from './built.ts'

const read = (path: string): string => readFileSync(join(root, path), 'utf8')
const document = read('docs/deployment.md')
const manifest = JSON.parse(read('package.json')) as { version: string; devDependencies: { node: string } }
const blocks = [...document.matchAll(/^```(\w*)\n([^]*?)^```$/gm)].map(([, language, text]) => ({ language, text: text! })) // prettier-ignore

test('docs/deployment.md: its folders exist, and its snippets are right', async (t) => {
  const folders = [...document.matchAll(/k8s\/[a-z0-9/.-]*[a-z0-9]/g)].map(([path]) => path)
  t.ok(folders.length > 10)
  t.same(folders.filter((path) => !existsSync(join(root, path))), []) // prettier-ignore
  const samples = blocks.filter(({ language }) => language === 'yaml').map(({ text }) => text)
  t.ok(samples.length >= 3)
  for (const sample of samples) {
    t.type(parse(sample), 'object')
    if (!/^cluster:/m.test(sample)) continue
    const folder = t.testdir({ 'config.yaml': sample, 'objects.yaml': '' })
    const written: string[] = []
    const io = { out: () => {}, err: (text: string) => void written.push(text), env: {}, colors: false }
    t.equal(await run(['check', '--config', join(folder, 'config.yaml')], io), 0, written.join(''))
    writeFileSync(join(folder, 'config.yaml'), `${sample}policys: []\n`)
    t.equal(await run(['check', '--config', join(folder, 'config.yaml')], io), 1, 'a wrong one would be noticed')
  }
  const corefile = read('k8s/overlays/coredns-custom/coredns-custom.yaml')
  const inCorefile = (line: string): string => line.replace(/"10\.96\.0\.54"/, '"set by kustomize"').trim()
  const block = blocks.find(({ text }) => text.startsWith('backend.svc'))?.text ?? ''
  for (const line of block.split('\n')) t.ok(corefile.includes(inCorefile(line)), line)
  const address = /clusterIP: (\S+)/.exec(read('k8s/base/service.yaml'))?.[1]
  t.match(block, `"${address}"`)
  const listen = /^listen: \["([^"]+):53", "\[([^"]+)\]:53"\]$/m.exec(read('k8s/overlays/daemonset/config.yaml'))
  for (const local of listen?.slice(1) ?? ['none']) t.match(document, local)
  t.match(document, `peerdns:${manifest.version}`)
})

test('Dockerfile: pinned, not root, no shell at run time, and given all that it copies', async (t) => {
  const dockerfile = read('Dockerfile')
  t.match(dockerfile, `ARG NODE_IMAGE=docker.io/library/node:${manifest.devDependencies.node}-bookworm-slim`)
  const final = dockerfile.slice(dockerfile.lastIndexOf('\nFROM '))
  t.match(final, /^\nFROM scratch$/m)
  t.match(final, /^USER 65532:65532$/m)
  t.notMatch(final, /^RUN /m)
  for (const instruction of ['ENTRYPOINT', 'CMD']) t.match(final, new RegExp(`^${instruction} \\["`, 'm'))
  const health = JSON.parse(/^HEALTHCHECK .* CMD (\[.*\])$/m.exec(final)?.[1] ?? '[]') as string[]
  t.strictSame(health, ['node', 'bin/peerdns.mjs', 'health'])
  const sent = new Set([...read('.dockerignore').matchAll(/^!(\S+)$/gm)].map((match) => match[1]))
  const copied = [...dockerfile.matchAll(/^COPY (?!--from)(.+) \S+$/gm)].flatMap(([, sources]) => sources!.split(' '))
  t.ok(copied.length > 5)
  // A file of a folder is named with it.
  for (const source of copied) t.ok(sent.has(source), `${source} is in the build's context`)
  t.same([...sent].filter((path) => !existsSync(join(root, path!))), [], 'and it is there') // prettier-ignore
})

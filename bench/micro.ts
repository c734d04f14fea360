/**
 * `npm run bench:micro`: parsing, looking up, encoding, and whole answers, each without sockets; one program after the
 * other.
 */
import { spawnSync } from 'node:child_process'
import { join } from 'node:path'

const subjects = ['wire', 'zone', 'cache', 'answer']
const asked = process.argv.slice(2)
const unknown = asked.find((subject) => !subjects.includes(subject))
if (unknown !== undefined) {
  console.error(`no subject \`${unknown}\`: ${subjects.join(', ')}`)
  process.exit(2)
}
for (const subject of asked.length === 0 ? subjects : asked) {
  console.log(`\n${subject}`)
  const file = join(import.meta.dirname, 'micro', `${subject}.ts`)
  const { status } = spawnSync(process.execPath, ['--expose-gc', file], { stdio: 'inherit' })
  if (status !== 0) process.exit(status ?? 1)
}

/** Which peerdns was measured. */
import { spawnSync } from 'node:child_process'

/** The last commit that changed what is measured; with `+` where its sources are not as committed. */
export function measuredCommit(root: string): string {
  const sources = ['src', 'bin', 'package.json']
  const commit = git(root, 'log', '-1', '--format=%h', '--', ...sources)
  if (commit === null || commit === '') return 'without a repository'
  return git(root, 'status', '--porcelain', '--', ...sources) === '' ? commit : `${commit}+`
}

/** What git says; null where it cannot. */
function git(root: string, ...args: string[]): string | null {
  const { status, stdout } = spawnSync('git', args, { cwd: root, encoding: 'utf8' })
  return status === 0 ? stdout.trim() : null
}

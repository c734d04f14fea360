/** Answers of each policy by target, as the pipeline counted them. */
import type { PipelineStats } from '../pipeline/pipeline-stats.ts'

/** Stands for what no target gave: fixed addresses, denials by rule, failures. */
export const madeHere = 'none'

/** The pipeline counts a local answer under its zone, and what it made itself under the policy. */
const targetOf = (counted: string): string => (counted === 'zone' ? 'local' : counted === 'policy' ? madeHere : counted)

export const answersOfPolicy = (stats: PipelineStats, policy: string): ReadonlyMap<string, number> =>
  new Map(Array.from(stats.answersByPolicy.get(policy) ?? [], ([counted, count]) => [targetOf(counted), count]))

/** Metrics of agents: which of a run's are theirs, and what each is called. */

/** Only runs of agents report any of these. */
const TELLING = /^(agent|baseline|data)\/|^(train|eval)\/avg_/
/** What stands together with them, such as the loss of the same run. */
const TOGETHER = /^(agent|train|eval|baseline|data)\//

interface AgentMetric {
  /** Locale key under jobs.agentMetric. */
  name: string
  /** Locale key under jobs.unit, or null for a pure number. */
  unit: string | null
  matches: RegExp
}

const METRICS: readonly AgentMetric[] = [
  { name: 'accuracy', unit: null, matches: /^(train|eval|baseline)\/accuracy$/ },
  { name: 'score', unit: null, matches: /^(train|eval|baseline)\/avg_score$/ },
  { name: 'reward', unit: null, matches: /^(train|eval|baseline)\/avg_reward$/ },
  { name: 'hits', unit: null, matches: /^(train|eval|baseline)\/avg_hits$/ },
  { name: 'strategy', unit: null, matches: /^(train|eval|baseline)\/avg_strategy$/ },
  { name: 'turns', unit: 'turns', matches: /^(agent\/turns\/mean|(train|eval|baseline)\/avg_turns)$/ },
  { name: 'firstHit', unit: 'turns', matches: /^(agent\/first_hit_turn\/mean|(eval|baseline)\/first_hit_turn)$/ },
  { name: 'tokens', unit: 'tokens', matches: /^(agent\/tokens\/mean|(eval|baseline)\/avg_tokens)$/ },
  { name: 'sampledTokens', unit: 'tokens', matches: /^agent\/sampled_tokens\/mean$/ },
  { name: 'policyLoss', unit: null, matches: /^train\/policy_loss$/ },
  { name: 'calls', unit: 'calls', matches: /^agent\/calls\/mean$/ },
  { name: 'callErrors', unit: 'calls', matches: /^agent\/call_errors\/mean$/ },
  { name: 'episodeTime', unit: 'seconds', matches: /^agent\/episode_s\/mean$/ },
  { name: 'answered', unit: null, matches: /^agent\/answered\/mean$/ },
  { name: 'malformed', unit: null, matches: /^agent\/malformed\/mean$/ },
  { name: 'recall', unit: null, matches: /^(eval|baseline\/\w+)\/recall@\d+$/ },
  { name: 'mrr', unit: null, matches: /^(eval|baseline\/\w+)\/mrr@\d+$/ },
  { name: 'workflowErrors', unit: null, matches: /^agent\/workflow_error(s)?\/mean$/ },
  { name: 'missingCalls', unit: 'calls', matches: /^agent\/missing_calls\/mean$/ },
  { name: 'rows', unit: 'rows', matches: /^data\/rows$/ },
  { name: 'rowsSelection', unit: 'rows', matches: /^data\/rows\/tool_selection$/ },
  { name: 'rowsPlanning', unit: 'rows', matches: /^data\/rows\/multi_step_planning$/ },
  { name: 'rowsTiming', unit: 'rows', matches: /^data\/rows\/timing_decision$/ },
  { name: 'rowsRetrieval', unit: 'rows', matches: /^data\/rows\/tool_retrieval$/ },
  { name: 'datasetRows', unit: 'rows', matches: /^data\/dataset_rows$/ },
  { name: 'leftOutRows', unit: 'rows', matches: /^data\/left_out_rows$/ },
  { name: 'replayedRows', unit: 'rows', matches: /^data\/replayed_rows$/ },
]

/** The run's metrics of its agent, those that say most first; none where it trains no agent. */
export function agentKeys(reported: readonly string[]): string[] {
  if (!reported.some((key) => TELLING.test(key))) return []
  const rank = (key: string) => {
    const at = METRICS.findIndex((metric) => metric.matches.test(key))
    return at < 0 ? METRICS.length : at
  }
  return reported.filter((key) => TOGETHER.test(key)).sort((a, b) => rank(a) - rank(b) || a.localeCompare(b))
}

/** The number of first places that a metric looks at: 10 of `recall@10`; empty where it looks at all. */
export function placesOf(key: string): string {
  return /@(\d+)$/.exec(key)?.[1] ?? ''
}

export function agentMetric(key: string): AgentMetric | null {
  return METRICS.find((metric) => metric.matches.test(key)) ?? null
}

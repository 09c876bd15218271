/** What the dashboard knows about the engine's metrics: a name, a unit, and which are charted unasked. */
import { agentMetric } from './agentMetrics'

interface MetricEntry {
  /** Locale key under jobs.metric. */
  name: string
  /** Locale key under jobs.unit, or null for a pure number. */
  unit: string | null
  matches: RegExp
}

const ENTRIES: readonly MetricEntry[] = [
  { name: 'reward', unit: null, matches: /^critic\/rewards\/mean$/ },
  { name: 'score', unit: null, matches: /^critic\/score\/mean$/ },
  { name: 'validationAccuracy', unit: null, matches: /^val-(core|aux)\/.*\/(acc|reward|score)\/mean@\d+$/ },
  { name: 'validationLoss', unit: null, matches: /^val(-core)?\/loss$/ },
  { name: 'trainLoss', unit: null, matches: /^train\/loss$/ },
  { name: 'evaluationLoss', unit: null, matches: /^eval[_/]loss$/ },
  { name: 'loss', unit: null, matches: /^loss$/ },
  { name: 'rewardMargin', unit: null, matches: /^(train\/)?rewards\/margins$/ },
  { name: 'rewardMarginHeldOut', unit: null, matches: /^(eval[_/]|val\/)rewards\/margins$/ },
  { name: 'rewardAccuracy', unit: null, matches: /^(train\/)?(rewards\/accurac(y|ies)|accuracy)$/ },
  { name: 'rewardAccuracyHeldOut', unit: null, matches: /^(eval[_/]|val\/)(rewards\/accurac(y|ies)|accuracy)$/ },
  { name: 'rewardChosen', unit: null, matches: /^(train\/)?rewards\/chosen$/ },
  { name: 'rewardRejected', unit: null, matches: /^(train\/)?rewards\/rejected$/ },
  { name: 'logpsChosen', unit: null, matches: /^(train\/)?logps\/chosen$/ },
  { name: 'logpsRejected', unit: null, matches: /^(train\/)?logps\/rejected$/ },
  { name: 'tokenAccuracy', unit: null, matches: /^(train\/)?mean_token_accuracy$/ },
  { name: 'criticLoss', unit: null, matches: /^critic\/vf_loss$/ },
  { name: 'explainedVariance', unit: null, matches: /^critic\/vf_explained_var$/ },
  { name: 'policyLoss', unit: null, matches: /^actor\/pg_loss$/ },
  { name: 'kl', unit: null, matches: /^actor\/ppo_kl$/ },
  { name: 'klLoss', unit: null, matches: /^actor\/kl_loss$/ },
  { name: 'entropy', unit: null, matches: /^actor\/entropy(_loss)?$/ },
  { name: 'clipFraction', unit: null, matches: /^actor\/pg_clipfrac$/ },
  { name: 'gradNorm', unit: null, matches: /^((actor|train|critic)\/)?grad_norm$/ },
  { name: 'learningRate', unit: null, matches: /^((actor|critic)\/lr|train\/lr|(train\/)?learning_rate)$/ },
  { name: 'responseLength', unit: 'tokens', matches: /^response_length\/mean$/ },
  { name: 'responseClipRatio', unit: null, matches: /^response_length\/clip_ratio$/ },
  { name: 'promptLength', unit: 'tokens', matches: /^prompt_length\/mean$/ },
  { name: 'throughput', unit: 'tokensPerSecond', matches: /^perf\/throughput$/ },
  {
    name: 'stepTime',
    unit: 'seconds',
    matches: /^(timing_s\/step|perf\/time_per_step|train\/time\(s\)|train\/step_time_s)$/,
  },
  { name: 'generationTime', unit: 'seconds', matches: /^timing_s\/gen$/ },
  { name: 'mismatchKl', unit: null, matches: /^rollout_corr\/kl$/ },
  { name: 'mismatchMean', unit: null, matches: /^training\/rollout_probs_diff_mean$/ },
  { name: 'mismatchMax', unit: null, matches: /^training\/rollout_probs_diff_max$/ },
  { name: 'mismatchCorrelation', unit: null, matches: /^training\/rollout_actor_probs_pearson_corr$/ },
  { name: 'advantage', unit: null, matches: /^critic\/advantages\/mean$/ },
  { name: 'uniformGroups', unit: null, matches: /^training\/uniform_group_fraction$/ },
  { name: 'allCorrectGroups', unit: null, matches: /^training\/all_correct_group_fraction$/ },
  { name: 'allWrongGroups', unit: null, matches: /^training\/all_wrong_group_fraction$/ },
  { name: 'uniformGroupTokens', unit: null, matches: /^training\/uniform_group_token_fraction$/ },
  { name: 'lengthScoreCorrelation', unit: null, matches: /^training\/length_score_correlation$/ },
  { name: 'repeatedNgrams', unit: null, matches: /^training\/repeated_ngram_fraction$/ },
  { name: 'formatOnly', unit: null, matches: /^training\/format_only_fraction$/ },
  { name: 'answerReward', unit: null, matches: /^training\/answer_reward_mean$/ },
]

/** Units that the key itself tells. */
const UNITS: readonly [RegExp, string][] = [
  [/^(timing_s\/|response_time_s\/(median|max)$)/, 'seconds'],
  [/^timing_per_token_ms\//, 'milliseconds'],
  [/^(response|prompt)_length\/(mean|max|min)$/, 'tokens'],
  [/^global_seqlen\/(mean|max|min|balanced_max|balanced_min)$/, 'tokens'],
  [/_(seconds|s)$/, 'seconds'],
  [/_ms$/, 'milliseconds'],
  [/num_tokens$|global_tokens$/, 'tokens'],
  [/_gb$/, 'gigabytes'],
]

/** Charts that a run gets unasked, each the first of its keys that the run reports. */
const DEFAULT_CHARTS: readonly (readonly RegExp[])[] = [
  [/^critic\/rewards\/mean$/, /^critic\/score\/mean$/],
  [/^val-core\/.*\/(acc|reward|score)\/mean@\d+$/, /^val-aux\/.*\/acc\/mean@\d+$/],
  [/^(train\/)?rewards\/margins$/],
  [/^(train\/)?rewards\/accurac(y|ies)$/, /^(train\/)?accuracy$/],
  [/^train\/loss$/, /^loss$/],
  [/^val(-core)?\/loss$/, /^eval[_/]loss$/],
  [/^(train\/)?rewards\/chosen$/],
  [/^(train\/)?rewards\/rejected$/],
  [/^actor\/ppo_kl$/, /^actor\/kl_loss$/],
  [/^actor\/pg_loss$/],
  [/^actor\/entropy$/, /^actor\/entropy_loss$/],
  [/^critic\/vf_loss$/],
  [/^((actor|train)\/)?grad_norm$/],
  [/^train\/lr$/, /^(train\/)?learning_rate$/],
  [/^response_length\/mean$/],
  [/^response_length\/clip_ratio$/],
  [/^training\/uniform_group_fraction$/],
  [/^perf\/throughput$/],
  [/^timing_s\/step$/, /^perf\/time_per_step$/, /^train\/time\(s\)$/],
  [/^rollout_corr\/kl$/, /^training\/rollout_probs_diff_mean$/],
  [/^training\/rollout_actor_probs_pearson_corr$/],
]

export function metricName(key: string): string | null {
  return ENTRIES.find((entry) => entry.matches.test(key))?.name ?? null
}

export function metricUnit(key: string): string | null {
  const entry = agentMetric(key) ?? ENTRIES.find((one) => one.matches.test(key))
  return entry?.unit ?? UNITS.find(([pattern]) => pattern.test(key))?.[1] ?? null
}

/** Metric by which steps are turned into time, best first. */
export const STEP_TIME_KEYS = ['timing_s/step', 'perf/time_per_step', 'train/time(s)'] as const

/**
 * Keys to chart unasked: the recipe's own first, then the usual ones, as far as the run reports them.
 *
 * A recipe cannot know what the data is called: a key of its list that the run lacks stands for the run's key that
 * means the same.
 */
export function defaultKeys(headline: readonly string[], reported: readonly string[]): string[] {
  const known = new Set(reported)
  const chosen = new Set<string>()
  for (const key of headline) {
    if (known.has(key)) {
      chosen.add(key)
      continue
    }
    const slot = DEFAULT_CHARTS.find((patterns) => patterns.some((pattern) => pattern.test(key)))
    const standIn = slot === undefined ? undefined : firstMatch(slot, reported)
    if (standIn !== undefined) chosen.add(standIn)
  }
  for (const slot of DEFAULT_CHARTS) {
    if ([...chosen].some((key) => slot.some((pattern) => pattern.test(key)))) continue
    const key = firstMatch(slot, reported)
    if (key !== undefined) chosen.add(key)
  }
  return [...chosen]
}

function firstMatch(slot: readonly RegExp[], reported: readonly string[]): string | undefined {
  for (const pattern of slot) {
    const key = reported.find((one) => pattern.test(one))
    if (key !== undefined) return key
  }
  return undefined
}

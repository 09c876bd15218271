/** Names for the parts of the schema that this folder uses, and what follows from them. */
import type { components } from '@/api/schema'

type Schemas = components['schemas']

export type Evaluation = Schemas['EvaluationRead']
export type MeasuredDataset = Schemas['MeasuredDataset']
export type EvaluationTarget = Schemas['EvaluationTarget']
export type EvaluationCreate = Schemas['EvaluationCreate']
export type EvaluationEstimate = Schemas['EvaluationEstimate']
export type BenchmarkEstimate = Schemas['BenchmarkEstimate']
export type Target = EvaluationCreate['targets'][number]
export type Order = Evaluation['benchmarks'][number]
export type BenchmarkResult = Schemas['BenchmarkResult']
export type Score = Schemas['Score']
export type GroupScore = Schemas['GroupScore']
export type Counts = BenchmarkResult['counts']
export type Verdict = Schemas['Verdict']
export type Sample = Schemas['Sample']
export type SamplePage = Schemas['SamplePage']
export type SampleRead = Schemas['SampleRead']
export type Benchmark = Schemas['BenchmarkRead']

/** As they stand in a bar, the answered ones first. */
export const VERDICTS = ['correct', 'wrong', 'unanswered', 'truncated', 'failed'] as const satisfies readonly Verdict[]

export const CHANGES = ['any', 'better', 'worse'] as const
export type Change = (typeof CHANGES)[number]

export const BENCHMARK_NAMES = [
  'gsm8k',
  'math',
  'math500',
  'humaneval',
  'mmlu',
  'custom',
  'harness',
] as const satisfies readonly Order['benchmark'][]

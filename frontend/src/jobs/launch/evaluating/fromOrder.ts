/** A benchmark's order as its form holds it, so that a copied job can be changed. */
import { newOrder, newScorer, type Order, type OrderDraft, type ScorerDraft } from '@/evaluations'

type Scorer = Extract<Order, { benchmark: 'custom' }>['scorer']

function scorerDraft(scorer: Scorer): ScorerDraft {
  const draft = { ...newScorer(), kind: scorer.kind }
  switch (scorer.kind) {
    case 'exact':
    case 'contains':
      return { ...draft, ignoreCase: scorer.ignore_case }
    case 'regex':
      return { ...draft, pattern: scorer.pattern }
    case 'numeric':
      return { ...draft, tolerance: scorer.tolerance }
    case 'math':
    case 'tool_use':
      return draft
    case 'choice':
      return { ...draft, choicesColumn: scorer.choices_column }
    case 'json':
      return { ...draft, schemaText: scorer.schema_text ?? '', equalsAnswer: scorer.equals_answer }
    case 'judge':
      return {
        ...draft,
        judge: scorer.judge,
        form: scorer.form,
        rubric: scorer.rubric,
        threshold: scorer.threshold,
        maxCost: scorer.max_cost,
        humanColumn: scorer.human_column ?? null,
      }
    case 'file':
      return { ...draft, file: scorer.file, threshold: scorer.threshold }
    default:
      return { ...draft, threshold: scorer.threshold }
  }
}

function ownParts(order: Order): Partial<OrderDraft> {
  switch (order.benchmark) {
    case 'math':
    case 'math500':
      return { levels: order.levels ?? [], groups: order.types ?? [] }
    case 'humaneval':
      return { samples: order.samples, k: order.k, timeoutS: order.timeout_s, memoryMb: order.memory_mb }
    case 'mmlu':
      return { mode: order.mode, groups: order.subjects ?? [] }
    case 'custom':
      return {
        dataset: order.dataset,
        version: order.version ?? null,
        split: order.split ?? null,
        promptColumn: order.columns?.prompt ?? null,
        answerColumn: order.columns?.answer ?? null,
        template: order.template ?? '',
        groupColumn: order.group_column ?? null,
        scorer: scorerDraft(order.scorer),
      }
    case 'harness':
      return { task: order.task }
    default:
      return {}
  }
}

export function orderDraft(order: Order, key: number): OrderDraft {
  return {
    ...newOrder(order.benchmark, key),
    label: order.label ?? '',
    limit: order.limit ?? null,
    shots: order.shots ?? null,
    chat: order.chat,
    system: order.system ?? '',
    temperature: order.decoding?.temperature ?? 0,
    topP: order.decoding?.top_p ?? 1,
    maxTokens: order.decoding?.max_tokens ?? null,
    ...ownParts(order),
  }
}

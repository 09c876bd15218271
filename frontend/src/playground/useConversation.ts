/** What one column's model answered to the prompts that all columns share. */
import { computed, nextTick, onScopeDispose, type Ref, reactive, watch } from 'vue'

import { type ApiError, asApiError } from '@/api/errors'

import { findToken } from './prompt'
import { askModel, type Asked, joinCalls, type Message, type TextMessage } from './stream'
import {
  type Answer,
  type Endpoint,
  type ExactPrompt,
  isWaiting,
  newAnswer,
  type Settings,
  textOf,
  type Token,
} from './types'
import type { Voted } from './votes'

/** The API's word for a model that is still being loaded: it is asked again. */
const STARTING = 'endpoint_starting'
const AGAIN_MS = 1000

interface Context {
  model: Ref<string>
  prompts: Ref<readonly string[]>
  settings: Ref<Settings>
  /** Turns before the first prompt. */
  context: Ref<readonly TextMessage[]>
  endpoint: Ref<Endpoint | undefined>
  /** What to start is known; a request may start more. */
  canStart: Ref<boolean>
  /** The model has no chat template. */
  isText: Ref<boolean>
  start: (name: string) => Promise<void>
  explain: (error: ApiError) => string
}

/** An answer as requests name it, with the results of its calls. */
function messagesOf(answer: Answer): Message[] {
  const content = textOf(answer)
  if (answer.calls.length === 0) return [{ role: 'assistant', content }]
  const calls = answer.calls.map(({ id, name, arguments: given }) => ({
    id,
    type: 'function' as const,
    function: { name, arguments: given },
  }))
  const results = answer.calls.map(({ id }, at) => ({
    role: 'tool' as const,
    tool_call_id: id,
    content: answer.results?.[at] ?? '',
  }))
  return [{ role: 'assistant', content, tool_calls: calls }, ...results]
}

function withBeginning(messages: readonly Message[], begun: readonly Token[]): Asked {
  if (begun.length === 0) return { messages, isBegun: false }
  return {
    messages: [...messages, { role: 'assistant', content: textOf({ edited: null, tokens: begun }) }],
    isBegun: true,
  }
}

function isMoving(endpoint: Endpoint | undefined): boolean {
  return endpoint?.state === 'starting' || endpoint?.state === 'stopping'
}

/** The prompt of an answer that goes on, token by token; null where one is not known, or it was another prompt's. */
function exactOf({ begun, prompt }: Answer, messages: string): number[] | null {
  if (begun.length === 0 || prompt?.messages !== messages) return null
  const ids = begun.flatMap((token) => (token.ids === undefined ? [null] : [...token.ids]))
  return ids.every((id) => id !== null) ? [...prompt.ids, ...ids] : null
}

/** Find which token was put in the place of the model's own, where all before it are known. */
async function identifyLast(answer: Answer, model: string, messages: string, signal: AbortSignal): Promise<void> {
  const [last, before] = [answer.begun.at(-1), answer.begun.slice(0, -1)]
  if (last === undefined || last.ids !== undefined || answer.prompt?.messages !== messages) return
  if (before.some(({ ids }) => ids === undefined)) return
  const id = await findToken(model, last.text, signal)
  if (id === null) return
  const known = { ...last, ids: [id] }
  answer.begun = [...before, known]
  answer.tokens.splice(before.length, 1, known)
}

function isTextMessage(message: Message): message is TextMessage {
  return message.role !== 'tool' && !('tool_calls' in message)
}

export function useConversation({
  model,
  prompts,
  settings,
  context,
  endpoint,
  canStart,
  isText,
  start,
  explain,
}: Context) {
  /** To each prompt an answer, or several: one after each time that calls of tools returned something. */
  const turns = reactive<Answer[][]>([])
  let running: AbortController | null = null

  const isWriting = computed(() =>
    turns.some((steps) => steps.some(({ state }) => state === 'loading' || state === 'writing')),
  )
  const isWaitingForResults = computed(() =>
    turns.slice(0, prompts.value.length).some((steps) => steps.some(isWaiting)),
  )

  /** What stands before the first prompt. */
  function opening(): Message[] {
    const { system } = settings.value
    return [...(system.trim() === '' ? [] : [{ role: 'system' as const, content: system }]), ...context.value]
  }

  /** What the `step`th answer to a prompt is given. */
  function messagesBefore(index: number, step: number): Message[] {
    const earlier = prompts.value
      .slice(0, index)
      .flatMap((content, at): Message[] => [{ role: 'user', content }, ...(turns[at] ?? []).flatMap(messagesOf)])
    const said = (turns[index] ?? []).slice(0, step).flatMap(messagesOf)
    return [...opening(), ...earlier, { role: 'user', content: prompts.value[index] ?? '' }, ...said]
  }

  /** Resolves when the model answers; the column shows meanwhile what its endpoint does. */
  async function untilReady(signal: AbortSignal): Promise<void> {
    if (endpoint.value?.state === 'ready') return
    if (!isMoving(endpoint.value)) {
      if (!canStart.value) return // the request starts it, or is told what there is not
      await start(model.value)
      await nextTick() // the column has the new state then
      signal.throwIfAborted()
    }
    if (!isMoving(endpoint.value)) return
    await new Promise<void>((resolve, reject) => {
      const finish = (end: () => void) => {
        unwatch()
        signal.removeEventListener('abort', abort)
        end()
      }
      const abort = () => {
        finish(() => {
          reject(new DOMException('stopped', 'AbortError'))
        })
      }
      const unwatch = watch(endpoint, (it) => {
        // What became of it is said by the answer to the request.
        if (!isMoving(it)) finish(resolve)
      })
      signal.addEventListener('abort', abort)
    })
  }

  async function write(answer: Answer, before: readonly Message[], signal: AbortSignal): Promise<void> {
    await untilReady(signal)
    const { messages, isBegun } = withBeginning(before, answer.begun)
    const spelled = JSON.stringify(before)
    // Calls of tools are only read from chats.
    const canBeExact = settings.value.tools.trim() === ''
    for (;;) {
      try {
        if (canBeExact) await identifyLast(answer, model.value, spelled, signal)
        const exact = canBeExact ? exactOf(answer, spelled) : null
        for await (const piece of askModel(model.value, messages, settings.value, {
          isBegun,
          isText: isText.value,
          exact,
          signal,
        })) {
          answer.state = 'writing'
          if (piece.promptIds !== null && !isBegun) answer.prompt = { ids: piece.promptIds, messages: spelled }
          answer.tokens.push(...piece.tokens)
          if (piece.calls.length > 0) answer.calls = joinCalls(answer.calls, piece.calls)
          answer.ending = piece.ending ?? answer.ending
          answer.model = piece.model ?? answer.model
        }
        return
      } catch (cause) {
        if (asApiError(cause).code !== STARTING) throw cause
        await new Promise((resolve) => setTimeout(resolve, AGAIN_MS))
      }
    }
  }

  /** Ask for one answer more to a prompt, or for the rest of one; whether it is whole and waits for nothing. */
  async function step(
    index: number,
    mine: AbortController,
    begun: readonly Token[],
    prompt: ExactPrompt | null,
  ): Promise<boolean> {
    const steps = turns[index] ?? []
    const messages = messagesBefore(index, steps.length)
    steps.push(newAnswer(settings.value.format !== 'text', begun, prompt))
    const answer = steps.at(-1)
    if (answer === undefined) return false
    const began = performance.now()
    try {
      await write(answer, messages, mine.signal)
      answer.state = 'done'
    } catch (cause) {
      if (cause instanceof DOMException && cause.name === 'AbortError') {
        answer.state = 'stopped'
      } else {
        const error = asApiError(cause)
        answer.problem = explain(error)
        answer.problemCode = error.code
        answer.state = 'failed'
      }
    } finally {
      answer.seconds = (performance.now() - began) / 1000
    }
    return answer.state === 'done' && !isWaiting(answer)
  }

  /** Ask on from the `at`th answer to a prompt; what was said from there on before is forgotten. */
  async function askFrom(index: number, at: number, begun: readonly Token[] = []): Promise<void> {
    running?.abort()
    const prompt = turns[index]?.[at]?.prompt ?? null
    const mine = new AbortController()
    running = mine
    turns.splice(index + 1)
    if (turns[index] === undefined) turns.push([])
    turns[index]?.splice(at)
    for (let now = index; now < prompts.value.length; now += 1) {
      if (turns[now] === undefined) turns.push([])
      if (!(await step(now, mine, now === index ? begun : [], now === index ? prompt : null)) || mine.signal.aborted)
        break
    }
    if (running === mine) running = null
  }

  /** Answer a prompt, and those before it that have no answer yet. */
  function answerTo(index: number): Promise<void> {
    return askFrom(Math.min(index, turns.length), 0)
  }

  /** Ask once more for an answer that failed. */
  function retry(index: number, at: number): Promise<void> {
    return askFrom(index, at, turns[index]?.[at]?.begun)
  }

  /** Let the model write the rest of an answer that begins with these tokens. */
  function goOn(index: number, at: number, begun: readonly Token[]): Promise<void> {
    return askFrom(index, at, begun)
  }

  /** Tell what the calls of an answer returned; the model goes on from there. */
  async function giveResults(index: number, at: number, results: readonly string[]): Promise<void> {
    const answer = turns[index]?.[at]
    if (answer === undefined) return
    answer.results = [...results]
    await askFrom(index, at + 1)
  }

  /** Put another text in the place of an answer; prompts after it are asked again. */
  async function rewrite(index: number, at: number, text: string): Promise<void> {
    const answer = turns[index]?.[at]
    if (answer === undefined) return
    halt()
    Object.assign(answer, {
      edited: text,
      calls: [],
      results: null,
      state: 'done',
      problem: null,
      problemCode: null,
      ending: null,
    })
    turns[index]?.splice(at + 1)
    turns.splice(index + 1)
    if (index + 1 < prompts.value.length) await askFrom(index + 1, 0)
  }

  function halt(): void {
    running?.abort()
  }

  function clear(): void {
    halt()
    turns.splice(0)
  }

  /** Show answers that are there already; the next prompt goes on from them. */
  function restore(answers: readonly (readonly Answer[])[]): void {
    halt()
    turns.splice(0, turns.length, ...answers.map((steps) => [...steps]))
  }

  watch(model, clear)
  onScopeDispose(halt)

  /** All that was said up to an answer, which is the last message. */
  function saidUntil(index: number, at: number): Message[] {
    const answer = turns[index]?.[at]
    return answer === undefined ? [] : [...messagesBefore(index, at), ...messagesOf(answer).slice(0, 1)]
  }

  /** The newest answer with what it was given; null while there is none that is whole, or tools had a part in it. */
  function newest(): Voted | null {
    const index = prompts.value.length - 1
    const at = (turns[index]?.length ?? 0) - 1
    const answer = turns[index]?.[at]
    if (answer?.state !== 'done' || answer.calls.length > 0) return null
    const messages = messagesBefore(index, at)
    return messages.every(isTextMessage)
      ? {
          model: answer.model ?? model.value,
          text: textOf(answer),
          messages,
          isEdited: answer.edited !== null || answer.begun.length > 0,
        }
      : null
  }

  /** What the model is asked for an answer with. */
  function askedFor(index: number, at: number): Asked {
    return withBeginning(messagesBefore(index, at), turns[index]?.[at]?.begun ?? [])
  }

  /** What the model would be asked with a first prompt. */
  function askedFirst(prompt: string): Asked {
    return { messages: [...opening(), { role: 'user', content: prompt }], isBegun: false }
  }

  return {
    turns,
    isWriting,
    isWaitingForResults,
    answerTo,
    retry,
    goOn,
    giveResults,
    rewrite,
    halt,
    clear,
    restore,
    saidUntil,
    askedFor,
    askedFirst,
    newest,
  }
}

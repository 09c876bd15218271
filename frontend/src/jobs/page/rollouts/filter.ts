/** Which responses of a step are shown. */
export interface ResponseFilter {
  text: string
  scoreFrom: number | null
  scoreTo: number | null
  tokensFrom: number | null
  tokensTo: number | null
  part: string | null
  partFrom: number | null
  partTo: number | null
}

export const NO_FILTER: Readonly<ResponseFilter> = {
  text: '',
  scoreFrom: null,
  scoreTo: null,
  tokensFrom: null,
  tokensTo: null,
  part: null,
  partFrom: null,
  partTo: null,
}

export function isFiltered(filter: ResponseFilter): boolean {
  return filter.text !== '' || Object.entries(filter).some(([name, value]) => name !== 'text' && value !== null)
}

/** As the server takes it; the range of a part means nothing without the part. */
export function queryOf(filter: ResponseFilter) {
  const ofPart =
    filter.part === null
      ? {}
      : { part: filter.part, min_part: filter.partFrom ?? undefined, max_part: filter.partTo ?? undefined }
  return {
    text: filter.text === '' ? undefined : filter.text,
    min_score: filter.scoreFrom ?? undefined,
    max_score: filter.scoreTo ?? undefined,
    min_tokens: filter.tokensFrom ?? undefined,
    max_tokens: filter.tokensTo ?? undefined,
    ...ofPart,
  }
}
